import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.filter.SqlFilter;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;

/** What RocketMQ's own filter says of many expressions, of sets of properties each. */
public final class Verdicts {
    private static final String[] NAMES = {"a", "b", "c", "$d", "e_1", "TAGS"};
    private static final String[] VALUES = {
        "5", "-3", "5.5", "+7", "abc", "true", "TRUE", "9223372036854775807", " 6 ", "1e3", "NaN", "3000000000",
        "ab'c", "Infinity", "5d", ".5", "00012", "x y", "\u00e9t\u00e9", "\u4e2d\u6587",
    };
    private static final String[] FIXED = {
        "", " ", "a", "5", "'x'", "TRUE", "FALSE", "NULL", "a = NULL", "a IS NULL", "a is not null", "a IS 5", "a IS NOT 5", "a NOT 5",
        "a = 1 b", "a = 1 5", "a = 1 (b", "a = 1 NOT b", "a = 1 #", "a = 1 b #", "a = 007", "a = 0L", "a = 12l", "a = 1e", "a = 5.", "a = .5", "a = 5.E1",
        "a = --5", "a = 5 -- all\n", "a = 5 -- all", "a /* in between */ = 5", "a = 5 /* not closed", "a = /**/ 5", "a = '5' /* ** */ AND b IS NULL",
        "a = 9223372036854775807", "a = 9223372036854775808", "a = -9223372036854775808", "a = -2147483648", "a > 0.0", "a = 1e400", "a = 1e-400",
        "a BETWEEN 5 AND 3", "a BETWEEN 3 AND 5", "a BETWEEN -5 AND 5", "a BETWEEN 5 AND -5", "a NOT BETWEEN 5 AND 3", "a NOT BETWEEN 3 AND 5",
        "a BETWEEN 'a' AND 'b'", "a BETWEEN NULL AND 5", "a BETWEEN b AND 5", "5 BETWEEN a AND b", "a BETWEEN 1 AND 5.5", "a BETWEEN TRUE AND FALSE",
        "a IN ('abc', '5')", "a NOT IN ('abc', '5')", "a IN ()", "a IN ('1', 5)", "a IN (b)", "5 IN ('5')", "(a) IN ('5')", "(a = 5) IN ('5')", "a IN ('a','b','c','d','e','5')",
        "a CONTAINS 'b'", "a NOT CONTAINS 'b'", "a CONTAINS ''", "a CONTAINS 5", "a CONTAINS b", "'abc' CONTAINS 'b'", "5 CONTAINS '5'", "(a = 5) CONTAINS 't'", "a STARTSWITH 'ab'",
        "a NOT STARTSWITH 'ab'", "a ENDSWITH 'bc'", "a NOT ENDSWITH 'bc'", "a contains 'B'", "NOT a CONTAINS 'b'", "a STARTSWITH ''", "a NOT ENDSWITH ''",
        "a > 'x'", "a > '5'", "a > TRUE", "a > b", "a >= b", "'5' > a", "TRUE > a", "(a = 5) > 3", "-a > 3", "a > -3", "a > +3", "+a > 3", "- 'x' > 3", "a > -'x'", "-5 > a", "- -5 = a",
        "a = TRUE", "TRUE = a", "1 = TRUE", "TRUE = 1", "TRUE = TRUE", "(a = 5) = TRUE", "(a = 5) = (b = 5)", "(a = 5) = 'true'", "'true' = (a = 5)", "a = 5 = TRUE", "a = b", "a <> b", "a <> 5",
        "a <> NULL", "NULL = NULL", "NULL IS NULL", "5 IS NULL", "5 IS NOT NULL", "'x' = 'x'", "'x' = 'y'", "'x' <> 'y'", "5 = 5.0", "5 = '5'", "'5' = 5", "'5.0' = 5", "5.0 = '5'", "'x' = 5",
        "3000000000 > 5", "5 < 3000000000", "3000000000 = 3000000000.0", "a > 3000000000", "a < 5.5", "5.5 > a", "a = 'ab''c'", "a = 'ab'c'", "a = 'abc", "a = \"abc\"", "a == 5", "a != 5", "a > = 5", "a => 5",
        "NOT a", "NOT NOT a", "NOT (a)", "NOT 5", "NOT TRUE", "NOT NULL", "NOT a = 5", "NOT (a = 5)", "a AND b", "a OR b", "a AND 5", "TRUE AND NULL", "FALSE AND NULL", "NULL OR TRUE", "NULL OR FALSE", "NULL AND NULL",
        "(a = 5", "a = 5)", "((a = 5))", "()", "a = (5)", "a = ('5')", "a = (b = 5)", "a AND", "AND a", "a = ", "= a", "a b", "a, b", "$d = 5", "_x IS NULL", "1a = 5", "a.b = 5", "a-b = 5", "a + b = 5", "\u00e9 = 5", "a = '\u4e2d\u6587'",
        "A = 5", "between = 5", "betweenx IS NULL", "TrUe", "nUlL iS nUlL", "a LIKE 'x'", "a\t=\n5\r\f", "a IS NULL IS NULL", "a > 3 > 2", "a > b OR TRUE", "TRUE OR a > b", "FALSE AND a > b", "a > b AND FALSE", "a IS NULL OR a > 5 AND b < 3",
        "now() > 5", "a = 5 AND b IS NOT NULL AND c <> 'x' OR NOT e_1 IN ('x')", "TAGS = 'abc'", "a = 0x10", "a = '0x10'", "a = 1_000", "a=5AND b=5", "a=5AND(b=5)", "a>5.AND b IS NULL", "a=-5.5e-1",
    };

    private final Random random;

    private Verdicts(long seed) {
        random = new Random(seed);
    }

    private String any(String... of) {
        return of[random.nextInt(of.length)];
    }

    private String text() {
        return "'" + any(VALUES).replace("'", "''") + "'";
    }

    private String number() {
        return any("0", "3", "5", "7", "12L", "3000000000", "5.5", ".5", "1e3", "5.", "9223372036854775807", "2147483648", "0.0", "007");
    }

    private String operand(int depth) {
        switch (random.nextInt(depth > 3 ? 7 : 9)) {
            case 0: case 1: case 2: return any(NAMES);
            case 3: case 4: return number();
            case 5: return text();
            case 6: return any("-", "+", "- -") + any(any(NAMES), number());
            case 7: return "(" + condition(depth + 1) + ")";
            default: return any("TRUE", "FALSE", "NULL", "(" + operand(depth + 1) + ")");
        }
    }

    private String condition(int depth) {
        switch (random.nextInt(depth > 3 ? 8 : 12)) {
            case 0: case 1: return operand(depth) + any(" = ", " <> ", "=", "<>") + operand(depth);
            case 2: case 3: return operand(depth) + any(" > ", " >= ", " < ", " <= ", "<", ">=") + operand(depth);
            case 4: return operand(depth) + any(" IS NULL", " IS NOT NULL", " is null");
            case 5: return operand(depth) + any("", " NOT") + " BETWEEN " + operand(depth) + " AND " + operand(depth);
            case 6: {
                StringBuilder list = new StringBuilder(text());
                for (int more = random.nextInt(7); more > 0; more--) list.append(any(",", ", ")).append(text());
                return any(any(NAMES), operand(depth)) + any("", " NOT") + " IN (" + list + ")";
            }
            case 7: return operand(depth) + any("", " NOT") + any(" CONTAINS ", " STARTSWITH ", " endswith ") + any(text(), "'b'", "''", "'a'");
            case 8: return condition(depth + 1) + " AND " + condition(depth + 1);
            case 9: return condition(depth + 1) + " OR " + condition(depth + 1);
            case 10: return "NOT " + any("(" + condition(depth + 1) + ")", condition(depth + 1), any(NAMES));
            default: return "(" + condition(depth + 1) + ")";
        }
    }

    /** Cuts, doubles or changes a character. */
    private String spoilt(String text) {
        int at = random.nextInt(text.length());
        switch (random.nextInt(4)) {
            case 0: return text.substring(0, at);
            case 1: return text.substring(0, at) + text.substring(at + 1);
            case 2: return text.substring(0, at) + any("(", ")", "'", " ", "-", "/*", "*/", "#", ",", "0", "e", ".", "NOT ", "=") + text.substring(at);
            default: return text.substring(at) + " " + text.substring(0, at);
        }
    }

    private Map<String, String> properties(int number) {
        Map<String, String> properties = new TreeMap<>();
        for (String name : NAMES) {
            if (number > 0 && random.nextInt(5) > 0) properties.put(name, any(VALUES));
        }
        return properties;
    }

    private static char verdict(Expression expression, Map<String, String> properties) {
        EvaluationContext context = new EvaluationContext() {
            @Override public Object get(String name) { return properties.get(name); }
            @Override public Map<String, Object> keyValues() { return null; }
        };
        try {
            Object value = expression.evaluate(context);
            return value == null ? 'N' : (Boolean) value ? 'T' : 'F';
        } catch (Throwable thrown) {
            return 'X';
        }
    }

    private static String escaped(String text) {
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r").replace("\f", "\\f");
    }

    public static void main(String[] args) throws Exception {
        Verdicts random = new Verdicts(Long.parseLong(args[1]));
        int wanted = Integer.parseInt(args[2]);
        List<Map<String, String>> sets = new java.util.ArrayList<>();
        for (int number = 0; number < 16; number++) sets.add(random.properties(number));
        Set<String> expressions = new LinkedHashSet<>(List.of(FIXED));
        while (expressions.size() < wanted) {
            String expression = random.condition(0);
            if (expression.length() <= 160) expressions.add(random.random.nextInt(5) == 0 ? random.spoilt(expression) : expression);
        }
        PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(args[0]), StandardCharsets.UTF_8));
        for (Map<String, String> set : sets) {
            StringBuilder line = new StringBuilder("properties");
            set.forEach((name, value) -> line.append('\t').append(name).append('=').append(value));
            out.println(line);
        }
        for (String text : expressions) {
            StringBuilder verdicts = new StringBuilder();
            try {
                Expression expression = new SqlFilter().compile(text);
                for (Map<String, String> set : sets) verdicts.append(verdict(expression, set));
            } catch (Throwable refused) {
                verdicts.append('!');
            }
            out.println(verdicts + "\t" + escaped(text));
        }
        out.close();
    }
}
