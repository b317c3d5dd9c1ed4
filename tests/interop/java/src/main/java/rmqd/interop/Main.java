package rmqd.interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs the checks against the brokers of one name server, or keeps one consumer running for other tools to look at.
 *
 * <pre>
 *   Main NAMESRV [CHECK | PREFIX*]...      the checks, all of them when none is named
 *   Main --list                            the names
 *   Main --consume NAMESRV TOPIC GROUP N   consumes; says "received N" after N messages; ends when stdin does
 *   Main --orderly NAMESRV TOPIC GROUP     consumes in order and says each body; ends when stdin does
 *   Main --soak NAMESRV ROLE RATE          the clients of tests/soak
 * </pre>
 */
public final class Main {
    private Main() {
    }

    static Map<String, Check> checks() {
        Map<String, Check> all = new LinkedHashMap<>();
        SendChecks.add(all);
        ConsumeChecks.add(all);
        GroupChecks.add(all);
        PullChecks.add(all);
        ReplayChecks.add(all);
        FilterChecks.add(all);
        DelayChecks.add(all);
        TransactionChecks.add(all);
        OrderChecks.add(all);
        RetryChecks.add(all);
        BodyChecks.add(all);
        BatchTopicChecks.add(all);
        ScaleChecks.add(all);
        if (Versions.hasPop()) {
            PopChecks.add(all);
            PopRequestChecks.add(all);
        }
        return all;
    }

    /** Checks that kill the broker or need it configured: run when they are named. */
    static Map<String, Check> alone() {
        Map<String, Check> all = new LinkedHashMap<>();
        OrderChecks.addAlone(all);
        DelayChecks.addAlone(all);
        TransactionChecks.addAlone(all);
        if (Versions.hasPop()) {
            PopChecks.addAlone(all);
            PopRequestChecks.addAlone(all);
        }
        BodyChecks.addAlone(all);
        BatchTopicChecks.addAlone(all);
        return all;
    }

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("--list")) {
            checks().keySet().forEach(System.out::println);
            alone().keySet().forEach(n -> System.out.println(n + " (alone)"));
            return;
        }
        if (args.length == 5 && args[0].equals("--consume")) {
            Hold.run(args[1], args[2], args[3], Integer.parseInt(args[4]));
            return;
        }
        if (args.length == 4 && args[0].equals("--soak")) {
            try {
                Soak.run(args[1], args[2], Double.parseDouble(args[3]));
            } catch (Exception e) {
                e.printStackTrace();
                System.exit(1);         // clients that were started would hold it
            }
            return;
        }
        if (args.length == 4 && args[0].equals("--orderly")) {
            Hold.orderly(args[1], args[2], args[3]);
            return;
        }
        if (args.length == 0 || args[0].startsWith("-")) {
            System.err.println("usage: Main NAMESRV [CHECK | PREFIX*]... | --list | --consume NAMESRV TOPIC GROUP N"
                + " | --orderly NAMESRV TOPIC GROUP | --soak NAMESRV ROLE RATE");
            System.exit(2);
        }
        int failed = runChecks(args[0], select(Arrays.asList(args).subList(1, args.length)));
        System.exit(failed == 0 ? 0 : 1);
    }

    private static Map<String, Check> select(List<String> wanted) {
        Map<String, Check> all = checks();
        if (wanted.isEmpty()) {
            return all;
        }
        all.putAll(alone());
        Map<String, Check> chosen = new LinkedHashMap<>();
        for (String w : wanted) {
            List<String> names = new ArrayList<>(all.keySet());
            names.removeIf(n -> !(w.endsWith("*") ? n.startsWith(w.substring(0, w.length() - 1)) : n.equals(w)));
            if (names.isEmpty()) {
                System.err.println("no such check: " + w);
                System.exit(2);
            }
            names.forEach(n -> chosen.put(n, all.get(n)));
        }
        return chosen;
    }

    private static int runChecks(String namesrv, Map<String, Check> checks) {
        int passed = 0;
        int failed = 0;
        for (Map.Entry<String, Check> e : checks.entrySet()) {
            String reason = null;
            long began = System.nanoTime();
            Env env = new Env(namesrv, e.getKey());
            try {
                e.getValue().run(env);
            } catch (Failure f) {
                reason = f.getMessage();
            } catch (Throwable t) {
                reason = t.toString().replaceAll("\\s+", " ");
                t.printStackTrace();
            }
            env.close();
            for (String note : env.notes) {
                System.out.println("# " + e.getKey() + ": " + note);
            }
            long ms = (System.nanoTime() - began) / 1000000;
            System.out.println(reason == null ? "ok " + e.getKey() + " (" + ms + " ms)"
                : "FAILED " + e.getKey() + ": " + reason);
            System.out.flush();
            if (reason == null) {
                passed++;
            } else {
                failed++;
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        return failed;
    }
}
