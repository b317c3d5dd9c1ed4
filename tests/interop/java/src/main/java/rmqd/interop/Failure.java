package rmqd.interop;

/** What a check throws: the reason is the whole message, no stack trace is shown for it. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    Failure(String reason) {
        super(reason);
    }

    static void require(boolean condition, String reason) throws Failure {
        if (!condition) {
            throw new Failure(reason);
        }
    }

    static void equal(Object got, Object expected, String what) throws Failure {
        if (got == null ? expected != null : !got.equals(expected)) {
            throw new Failure(what + ": got " + got + ", expected " + expected);
        }
    }
}
