package rmqd.interop;

/** One named behaviour of a broker as a client sees it. It throws when the behaviour is not there. */
@FunctionalInterface
interface Check {
    void run(Env env) throws Exception;
}
