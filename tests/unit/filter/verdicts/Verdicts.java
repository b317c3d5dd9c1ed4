// What RocketMQ's own classes say about expressions, numbers and Bloom filter positions.
//
//   javac -encoding UTF-8 -cp 'LIB/*' Verdicts.java
//   java -cp 'LIB/*:.' Verdicts > verdicts.txt          the fixture of verdicts_test.cc
//
// LIB is the lib folder of Apache RocketMQ 5.5.0. Fields of a line are split by tabs; bytes below space, the backslash
// and what is beyond ASCII are written \xHH, byte by byte of UTF-8.
//   P text                   a properties text; they are numbered from 0
//   E expression verdicts    a letter for each P: y, n, u (NULL), f (failed); or - when it does not compile
//   N text int long double   Integer.valueOf, Long.valueOf, bits of Double.valueOf; - where that fails
//   B text positions         BloomFilter.calcBitPositions with RocketMQ's defaults
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.parser.SelectorParser;
import org.apache.rocketmq.filter.util.BloomFilter;

public class Verdicts {
    static final StringBuilder out = new StringBuilder();
    static final List<Map<String, String>> sets = new ArrayList<>();
    static final Set<String> done = new HashSet<>();

    static String escaped(String s) {
        StringBuilder b = new StringBuilder();
        for (byte x : s.getBytes(StandardCharsets.UTF_8)) {
            if (x < ' ' || x == '\\' || x == 127) {
                b.append(String.format("\\x%02x", x & 255));
            } else {
                b.append((char) x);
            }
        }
        return b.toString();
    }

    static void line(String... fields) {
        out.append(String.join("\t", fields)).append('\n');
    }

    static void raw(String properties) {
        line("P", escaped(properties));
        sets.add(MessageDecoder.string2messageProperties(properties));
    }

    static void properties(String... pairs) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < pairs.length; i += 2) {
            b.append(pairs[i]).append('\1').append(pairs[i + 1]).append('\2');
        }
        raw(b.toString());
    }

    static class Context implements EvaluationContext {
        final Map<String, String> m;
        Context(Map<String, String> m) { this.m = m; }
        public Object get(String name) { return m.get(name); }
        public Map<String, Object> keyValues() { return new HashMap<>(m); }
    }

    static boolean e(String text) {
        if (!done.add(text)) return false;
        Expression compiled;
        try {
            compiled = SelectorParser.parse(text);
        } catch (Throwable t) {
            line("E", escaped(text), "-");
            return false;
        }
        StringBuilder verdicts = new StringBuilder();
        for (Map<String, String> m : sets) {
            char c;
            try {
                Object r = compiled.evaluate(new Context(m));
                c = r == null ? 'u' : (Boolean) r ? 'y' : 'n';
            } catch (Throwable t) {
                c = 'f';
            }
            verdicts.append(c);
        }
        line("E", escaped(text), verdicts.toString());
        return true;
    }

    static void number(String s) {
        String i = "-", l = "-", d = "-";
        try { i = Integer.valueOf(s).toString(); } catch (NumberFormatException x) { }
        try { l = Long.valueOf(s).toString(); } catch (NumberFormatException x) { }
        try { d = String.format("%016x", Double.doubleToLongBits(Double.valueOf(s))); } catch (NumberFormatException x) { }
        line("N", escaped(s), i, l, d);
    }

    // ---------------------------------------------------------------------------------- what is evaluated over

    static void propertySets() {
        properties();
        properties("a", "1");
        properties("a", "5", "b", "5", "c", "abc");
        properties("a", "5", "b", "6", "TAGS", "TagA", "KEYS", "k1 k2");
        properties("a", "-5", "b", "5.0");
        properties("a", "abc", "b", "abc", "c", "xabcx");
        properties("a", "abc", "b", "5", "TAGS", "TagB");
        properties("b", "abc", "c", "it's");
        properties("a", "true", "b", "false", "c", "TRUE");
        properties("a", "3000000000", "b", "-3000000000", "c", "9223372036854775807");
        properties("a", "9223372036854775808", "b", "1e3", "c", "0x10");
        properties("a", "5.5", "b", " 5 ", "c", "5d");
        properties("a", "NaN", "b", "Infinity", "c", "-Infinity");
        properties("a", "-0.0", "b", "0", "c", "+0");
        properties("a", "+7", "b", "007", "c", "７");
        properties("a", "中文", "b", "中", "c", "é");
        properties("_a", "1", "$b", "2", "A", "3", "a1", "4", "now", "1");
        properties("a", "''", "b", "'", "c", "x''y");
        properties("a", "1", "a", "2", "b", "2");
        properties("a", "1e400", "b", "1e-400", "c", "4.9E-324");
        properties("a", "10", "b", "9", "c", "100", "not", "1");
        raw("a\1" + "1");
        raw("a\1\2b\1" + "2\2\1x\2c\2" + "d\1e\1f\2");
        raw("\2\2a\1" + "1\2\2b\1" + "5\2");
    }

    // ---------------------------------------------------------------------------------------------- by hand

    static final String[] HAND = {
        // comparison
        "a = 1", "a = 5", "a=5", "5 = a", "a <> 5", "5 <> a", "a > 1", "a >= 5", "a < 5", "a <= 5", "1 < a", "5 >= a",
        "a > b", "a >= b", "a < b", "a <= b", "a = b", "a <> b", "b = a", "c = b", "c < a", "c > b",
        "a = 'abc'", "'abc' = a", "a <> 'abc'", "a = '5'", "a = '5.0'", "a > 'abc'", "a > '5'", "'5' < a", "a >= ''",
        "a = 5L", "a = 5l", "a > 5L", "a = 3000000000", "a > 2147483647", "a > 2147483648", "a > 2147483647L",
        "a = 5.0", "a = 5.", "a = .5", "a = 5e0", "a = 5E0", "a = 50e-1", "a = 0.5e+1", "a > 5.5", "a >= 5.5", "b = 5.0",
        "b > 4.9", "a = 9223372036854775807", "c = 9223372036854775807", "a = 9223372036854775808", "a > 1e400", "a > 1e308",
        "a > 1.7976931348623157e308", "a > 1.7976931348623159e308", "a = 4.9e-324", "a = 1e-400", "a = 0.0", "a = 0.",
        "a = .0", "a = 0e0", "a = 0", "a = 00", "a = 01", "a = 0L", "a = 0x10", "a = 1f", "a = 1d", "a = 1.5f", "a = 1e",
        "a = -5", "a = - 5", "a = --5", "a = +5", "a = -+-5", "a = +(5)", "a = -(5)", "a = -a", "-a = a", "-a = -5",
        "a > -5", "a >= -3000000000", "b = -3000000000", "a = -2147483648", "a = -9223372036854775807",
        "a = -9223372036854775808", "a = -5.5", "b >= -0.5", "a = -'5'", "a = -TRUE", "a > -b", "- a > 3", "+a = 5",
        "a + 1 = 2", "a - 1 = 2", "a * 2 = 2", "a / 2 = 1", "a % 2 = 1", "a = 1 + 1",
        "1 = 1", "1 = 2", "1 = 1.0", "1 = 1L", "1.5 = 1.5", "1 < 2", "2 < 1", "3000000000 > 1", "1 > 3000000000",
        "1.5 > 1", "1 > 1.5", "'a' = 'a'", "'a' = 'b'", "'a' < 'b'", "1 = 'a'", "'a' = 1", "'1' = 1", "1 = '1'",
        "'1.0' = 1", "'1.0' = 1.0", "a == 5", "a != 5", "a =< 5", "a => 5", "a <>", "= 5", "a =", "a > ", "a", "(a)", "5",
        "'x'", "-5", "+a", "-a",
        // booleans
        "TRUE", "FALSE", "NULL", "true", "False", "nUll", "a = TRUE", "a = true", "a = FALSE", "a <> TRUE", "TRUE = a",
        "TRUE <> a", "TRUE = TRUE", "TRUE = FALSE", "TRUE <> FALSE", "TRUE = 1", "1 = TRUE", "1 <> TRUE", "'true' = TRUE",
        "TRUE = 'true'", "'x' = FALSE", "a > TRUE", "TRUE > a", "TRUE > FALSE", "(a = 5) = TRUE", "(a = 5) = FALSE",
        "TRUE = (a = 5)", "(a = 5) = (b = 5)", "(a = 5) <> (b = 5)", "(a = 5) = 1", "(a = 5) = 'true'", "(a = 5) = b",
        "b = (a = 5)", "(a > 1) > 0", "a = 5 = TRUE", "a = 5 = b", "a = b = c", "a = 5 <> FALSE", "a = NULL", "NULL = a",
        "a <> NULL", "NULL = NULL", "NULL > 1", "a > NULL", "1 = NULL", "TRUE AND NULL", "NULL OR TRUE", "NULL AND FALSE",
        "NOT NULL", "NOT TRUE", "NOT FALSE", "NOT a", "NOT (a)", "NOT NOT a", "NOT (a = 5)", "NOT a = 5", "NOT (a = 5) = TRUE",
        "NOT a > 5", "NOT 5", "NOT 'x'", "NOT -a", "not (a > 5)", "NOT (NOT (a = 5))", "NOT (a IS NULL)",
        "a AND b", "a OR b", "a AND TRUE", "a OR TRUE", "5 AND TRUE", "TRUE AND 5", "TRUE OR 5", "TRUE AND 'x'", "-a AND TRUE",
        "TRUE OR a > 'x'", "TRUE AND a", "TRUE OR a",
        // logic
        "a = 5 AND b = 5", "a = 5 OR b = 5", "a = 5 and b = 5 or c = 'abc'", "a = 5 or b = 5 and c = 'abc'",
        "(a = 5 or b = 5) and c = 'abc'", "a = 1 AND b = 2 AND c = 3", "a = 1 OR b = 2 OR c = 3", "a > 5 AND b > 5",
        "a > 5 OR b > 5", "b > 5 OR a > 5", "b > 5 AND a > 5", "a = 'abc' OR a > 5", "a > 5 OR a = 'abc'",
        "a IS NULL OR a > 5", "a > 5 OR a IS NULL", "a IS NOT NULL AND a > 5", "x = 1 AND a > 5", "x = 1 OR a > 5",
        "x = 1 AND a = 'zzz'", "x = 1 OR a = 'abc'", "NOT (x = 1 AND a = 5)", "NOT (x = 1 OR a = 5)",
        "TRUE AND (FALSE OR a = 1) AND NOT (b = 2)", "a = 1 AND", "AND a = 1", "a = 1 OR OR b = 2", "a = 1 b = 2",
        "((a = 1))", "(((((a)))))", "((a = 1)", "(a = 1))", "()", "", " ", "(", ")",
        // null
        "a IS NULL", "a IS NOT NULL", "x IS NULL", "x IS NOT NULL", "a is null", "a Is Not nUlL", "5 IS NULL", "'x' IS NULL",
        "NULL IS NULL", "NULL IS NOT NULL", "TRUE IS NULL", "(a = 5) IS NULL", "(a > 5) IS NULL", "(a > 5) IS NOT NULL",
        "a = 5 IS NULL", "a > 5 IS NULL", "x = 5 IS NULL", "-a IS NULL", "-5 IS NULL", "a IS NULL IS NULL",
        "a IS NULL = TRUE", "a IS NULL = FALSE", "NOT a IS NULL", "a IS 5", "a IS", "a IS NOT", "a IS NOT 5", "a IS TRUE",
        "IS NULL", "a NOT NULL", "a IS NULL AND b IS NULL", "x = y", "x <> y", "x <> a", "a <> x", "a = x", "x = a",
        // between
        "a BETWEEN 1 AND 5", "a between 5 and 5", "a BETWEEN 5 AND 1", "a NOT BETWEEN 1 AND 5", "a NOT BETWEEN 5 AND 1",
        "a BETWEEN -10 AND 10", "a BETWEEN -5 AND -10", "a BETWEEN 1.5 AND 5.5", "a BETWEEN 5.5 AND 1", "a BETWEEN 1 AND 5.5",
        "a BETWEEN b AND c", "a BETWEEN 1 AND b", "5 BETWEEN a AND b", "5 BETWEEN 1 AND 9", "5 NOT BETWEEN 1 AND 9",
        "a BETWEEN '1' AND '5'", "a BETWEEN 'a' AND 'z'", "'x' BETWEEN 1 AND 5", "TRUE BETWEEN 1 AND 5",
        "a BETWEEN TRUE AND FALSE", "a BETWEEN NULL AND 5", "a BETWEEN 1 AND NULL", "NULL BETWEEN 1 AND 5",
        "a BETWEEN 1 AND 5 AND b = 5", "a BETWEEN 1 AND 5 OR b = 5", "a BETWEEN (1) AND (5)", "a BETWEEN 1 OR 5",
        "a BETWEEN 1", "a BETWEEN 1 AND", "a BETWEEN AND 5", "a BETWEEN 3000000000 AND 4000000000", "-a BETWEEN 1 AND 5",
        "a BETWEEN 4000000000 AND 1", "a BETWEEN 1 AND 3000000000", "x BETWEEN 1 AND 5", "x NOT BETWEEN 1 AND 5",
        "a BETWEEN 1 AND 5 = TRUE", "(a = 1) BETWEEN 1 AND 2", "a NOT BETWEEN 1.0 AND 2", "a BETWEEN 1 AND x",
        "a and between 2 and 10", " a between 10 and 0",
        // in
        "a IN ('1')", "a in ('5', 'abc')", "a IN ('1','2','3','4','5','6','7')", "a NOT IN ('1','2','3','4','5','6','7')",
        "a NOT IN ('5')", "x IN ('1')", "x NOT IN ('1')", "NOT (x IN ('1'))", "NOT (a IN ('5'))", "a IN ()", "a IN (5)",
        "a IN ('5', 5)", "a IN '5'", "a IN ('5'", "a IN ('5',)", "a IN (,'5')", "a IN (b)", "5 IN ('5')", "'5' IN ('5')",
        "(a) IN ('5')", "+a IN ('5')", "-a IN ('5')", "NOT a IN ('5')", "(a = 5) IN ('x')", "a IN ('')", "a IN ('''')",
        "a IN ('it''s')", "c IN ('it''s')", "a IN ('5') = TRUE", "a IN ('5') AND b IN ('5')", "a IN ('中文')", "TAGS IN ('TagA')",
        "TAGS = 'TagA' OR TAGS = 'TagB'", "TAGS IS NOT NULL", "KEYS CONTAINS 'k2'", "tags = 'TagA'",
        // parts
        "a CONTAINS 'b'", "c CONTAINS 'abc'", "c contains 'abc'", "c NOT CONTAINS 'abc'", "x CONTAINS 'a'",
        "x NOT CONTAINS 'a'", "NOT (x CONTAINS 'a')", "a CONTAINS ''", "a NOT CONTAINS ''", "a CONTAINS 5", "a CONTAINS b",
        "5 CONTAINS '5'", "5 NOT CONTAINS '5'", "'abc' CONTAINS 'b'", "'abc' NOT CONTAINS 'b'", "(a > 5) CONTAINS 'x'",
        "(a > 5) CONTAINS ''", "TRUE CONTAINS 'T'", "NULL CONTAINS 'a'", "-a CONTAINS '5'", "a CONTAINS '中'",
        "a CONTAINS 'b' CONTAINS 'b'", "a CONTAINS 'b' = TRUE", "c CONTAINS ''''",
        "a STARTSWITH 'a'", "a startswith 'ab'", "a NOT STARTSWITH 'a'", "x STARTSWITH 'a'", "x NOT STARTSWITH 'a'",
        "a STARTSWITH ''", "a NOT STARTSWITH ''", "a STARTSWITH 5", "5 STARTSWITH '5'", "'abc' STARTSWITH 'a'",
        "a ENDSWITH 'c'", "a endswith 'bc'", "a NOT ENDSWITH 'c'", "x ENDSWITH 'a'", "x NOT ENDSWITH 'a'", "a ENDSWITH ''",
        "a NOT ENDSWITH ''", "a ENDSWITH 5", "5 ENDSWITH '5'", "'abc' ENDSWITH 'c'", "a ENDSWITH '文'", "c STARTSWITH 'x'",
        "a STARTSWITH 'abcd'", "a STARTS WITH 'a'", "a NOT", "a NOT 5", "a NOT LIKE 'x'", "NOT CONTAINS 'a'",
        "a CONTAINS ('b')", "a STARTSWITH 'a' AND a ENDSWITH 'c'",
        // what follows, words, comments, strings
        "a LIKE 'x'", "a LIKE 'x%' ESCAPE '!'", "a = 5 foo", "a = 5 'x'", "a = 5 5", "a = 5 (", "a = 5 )", "a = 5 ,", "a = 5 ;",
        "a = 5 &", "a = 5 && b = 5", "a = 5 || b = 5", "a = 5 \"", "a = \"5\"", "a = 5 'x", "a = 5 foo 'x", "a = 5 foo ;",
        "a = 5 IS", "a = 5 -", "a = 5 - 1", "a = 5 +", "a = 5 TRUE", "a = 5 NULL", "a = 5 .", "a = 5 /", "a = 5 #", "a = 5.5.5",
        "a = 5 -- comment\n", "a = 5 -- comment", "a = 5 -- it's\n AND b = 5", "a = 5 --\r AND b = 6", "-- a\na = 5",
        "a = -- 5", "a = --\n5", "a /* x */ = /* y */ 5", "a = 5 /* open", "a = 5 /* x ** y */ AND b = 5", "a = 5 /**/",
        "a = 5 /* * / */", "a = 5 /*/ AND b = 5 */", "/* */ a /***/ = 5", "a\t=\n5\r\f", "a\u000b= 5", "a\u00a0= 5",
        "_a = 1", "$b = 2", "A = 3", "a1 = 4", "now = 1", "a <= now", "a.b = 1", "a-b = 1", "a:b = 1", "é = 1", "中文 = 1",
        "a = é", "a = '中文'", "a = 'é'", "c = 'é'", "a = 'it''s'", "c = 'it''s'", "a = ''''''", "a = ''''", "b = ''''",
        "c = 'x''''y'", "a = ''", "a = 'x", "a = x'", "a = 'a''b", "a = 'a'' ", "a = '\n'", "a = 'x\\'y'", "not = 1",
        "between = 1", "in IN ('1')", "is IS NULL", "true = 1", "NOTa = 1", "a=5AND b=5", "a=5 ANDb=5", "a IN('5')", "a BETWEEN1AND5",
        "a>1AND b<6", "(a=5)AND(b=5)", "a > 1 > 2", "a < b < c", "a > 1 = TRUE", "a = (b > 1)", "a = b > 1", "a > (b = 1)",
        "convert_string_expressions:a = 1", "date('2020') = 1", "XPATH 'x'", "a = 5 AND (b = 6 OR (c = 'abc' AND NOT (TAGS IS NULL)))",
        "a = ?", "a = :x", "[a] = 1", "{a} = 1", "a = 1_000", "a = 1e5L", "a = 1.e3", "b = 1000.0", "b = 1000", "b = 1e3", "c = 16", "c = 16.0",
        "a = 1.0e1.0", "a = .", "a = .e1", "a = 1..2", "a = 100000000000000000000000", "a = 0.1e-400",
    };

    // ------------------------------------------------------------------------------------------- at random

    static final Random random = new Random(92);

    static String one(String... of) {
        return of[random.nextInt(of.length)];
    }

    static String value() {
        return one("a", "b", "c", "x", "TAGS", "a", "b", "1", "5", "-5", "5.0", "5.5", "3000000000", "0", "'5'", "'abc'", "'true'",
            "TRUE", "FALSE", "NULL", "-a", "+b", "1e3", "7L");
    }

    static String string() {
        return one("'a'", "'abc'", "'5'", "''", "'b'", "'TagA'", "'true'", "'it''s'");
    }

    static String condition(int depth) {
        switch (random.nextInt(depth > 0 ? 16 : 9)) {
            case 0: case 1: return value() + one(" = ", " <> ", "=", "<>") + value();
            case 2: case 3: return value() + one(" > ", " >= ", " < ", " <= ", "<", ">") + value();
            case 4: return value() + one(" IS NULL", " IS NOT NULL");
            case 5: return value() + one(" BETWEEN ", " NOT BETWEEN ") + value() + " AND " + value();
            case 6: return one("a", "b", "c", "x", "5", "-a") + one(" IN (", " NOT IN (") + string() + one("", ", " + string()) + ")";
            case 7: return value() + one(" CONTAINS ", " NOT CONTAINS ", " STARTSWITH ", " NOT STARTSWITH ", " ENDSWITH ",
                " NOT ENDSWITH ") + string();
            case 8: return value();
            case 9: return "NOT " + one("", "(") + condition(depth - 1) + one("", ")");
            case 10: case 11: return condition(depth - 1) + " AND " + condition(depth - 1);
            case 12: case 13: return condition(depth - 1) + " OR " + condition(depth - 1);
            case 14: return "(" + condition(depth - 1) + ")";
            default: return "(" + condition(depth - 1) + ")" + one(" = ", " <> ", " > ") + value();
        }
    }

    static String numberText() {
        StringBuilder b = new StringBuilder();
        String alphabet = one("0123456789", "0123456789.", "0123456789.eE+-", "+-0123456789", "019.e-", "０١1२", "0x1f.p-+3dD",
            " \t1.5");
        int n = 1 + random.nextInt(one("s", "l").equals("s") ? 6 : 24);
        for (int i = 0; i < n; i++) {
            b.append(alphabet.charAt(random.nextInt(alphabet.length())));
        }
        return b.toString();
    }

    static void numbers() {
        for (String s : new String[] {"0", "-0", "+0", "1", "-1", "+1", "--1", "+-1", "-", "+", "007", "2147483647", "2147483648", "-2147483648",
            "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
            "99999999999999999999", " 1", "1 ", "1\t", "1L", "1l", "0x10", "1_0", "1.0", "1.", ".1", ".", "1e3", "1E3", "1e+3", "1e-3", "1e",
            "1e+", "e1", "1e3.5", "1.5.5", "1d", "1D", "1f", "1F", "1.5d", "1.5f", "1dd", "1df", "d", "f", "NaN", "nan", "-NaN", "+NaN", "NaNd",
            "Infinity", "-Infinity", "+Infinity", "infinity", "Inf", "Infinityd", "0x1p3", "0X1P3", "0x1.8p1", "0x.8p1", "0x1.p1", "0x.p1",
            "0x1", "0x1.8", "0xp1", "-0x1p3", "+0x1p-3", "0x1p3d", "0x1p3f", "0x1p+3", "0x1p", "0x1pd", "0x1p1025", "0x1p-1080",
            "0x1p99999999999", "0x1p-99999999999", "0x0p0", "-0x0p99999999999", "0x1.fffffffffffff7p0", "0x1.fffffffffffff8p0",
            "0x1.fffffffffffff9p0", "0x1.fffffffffffff8000000000000001p0", "0x1.00000000000008p0", "0x1.00000000000018p0",
            "0x1.fffffffffffff8p1023", "0x1.fffffffffffff7fp1023", "0x0.00000000000000000000000001p0", "0x10000000000000000000000000p0",
            "0x1p-1074", "0x1p-1075", "0x1.8p-1075", "0x1.0000000001p-1075", "0x3p-1075", "0x1.0000000000001p-1023", "0x0.8p-1073",
            "0x1.fffffffffffffp-1023", "0x1.ffffffffffffffp-1023", "0x1.g p1", "1.7976931348623157e308", "1.7976931348623159e308",
            "1e308", "1e309", "1e400", "-1e400", "1e99999999999", "1e-99999999999", "0e99999999999", "0.0e-99999999999", "4.9e-324",
            "2.4e-324", "2.5e-324", "1e-324", "1e-400", "-1e-400", "2.2250738585072014e-308", "2.2250738585072011e-308", "0.1", "123456789012345678901234567890",
            "0.00000000000000000000000000000000000000000000000001", "9007199254740993", "9007199254740992.5", "1e23", "8.5e22",
            "1" + "0".repeat(400), "0." + "0".repeat(400) + "1", "0." + "0".repeat(400) + "1e401", "1" + "0".repeat(400) + "e-400",
            "0".repeat(500) + "5", "5" + ".".repeat(1) + "0".repeat(500), "١٢٣", "1２", "۵", "߅", "९", "᠕", "꩕", "𝟓", "Ⅷ", "²", "一", "a",
            "", " ", "\u00a01", "\u20031", "\u00001", "1\u001f", "True", "0b1", "1,000", "1/2", "\u22125"}) {
            number(s);
        }
        for (int c = 0; c < 0x10000; c++) {
            if (Character.digit((char) c, 10) == 9) number("1" + (char) c + (char) (c - 9));
        }
        for (int i = 0; i < 600; i++) number(numberText());
    }

    public static void main(String[] args) throws Exception {
        propertySets();
        for (String s : HAND) e(s);
        for (int i = 0, compiled = 0; compiled < 1200 && i < 20000; i++) {
            String s = condition(3);
            if (s.length() > 160) continue;
            if (e(s)) compiled++;
        }
        numbers();
        BloomFilter bloom = BloomFilter.createByFn(20, 32);
        line("B", "", String.valueOf(bloom.getM()), String.valueOf(bloom.getK()));
        for (String s : new String[] {"g#T", "", "GROUP#TopicTest", "g_consumer_0123456789#topic_0123456789", "中文#é", "sixteen-bytes-#1"}) {
            StringBuilder b = new StringBuilder();
            for (int p : bloom.calcBitPositions(s)) b.append(b.length() == 0 ? "" : ",").append(p);
            line("B", escaped(s), b.toString());
        }
        System.out.write(out.toString().getBytes(StandardCharsets.US_ASCII));
        System.out.flush();
    }
}
