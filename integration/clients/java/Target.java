/** Where to connect, and what stands there. */
record Target(String host, int port, String user, String password, String database, boolean tls, boolean compress, boolean throughSluice) {
    /** DRIVER HOST PORT USER PASSWORD DATABASE TLS SERVER ROUTE. */
    static Target of(String[] words) {
        return new Target(
                words[1], Integer.parseInt(words[2]), words[3], words[4], words[5],
                words[6].equals("yes"),
                !System.getenv().getOrDefault("DRIVER_COMPRESSION", "no").equals("no"),
                words[8].equals("sluice"));
    }
}
