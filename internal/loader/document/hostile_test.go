package document

import (
	"fmt"
	"strings"
	"testing"

	"lockstep.run/lockstep/internal/limits"
)

// A document of some hundred kilobytes must not make gigabytes of messages, nor
// take the parser minutes.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat("{? "+strings.Repeat("k", limits.DocumentPathBytes/10)+" : ", 12) + "1" + strings.Repeat("}", 12)
	var directives strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&directives, "%%TAG !a%d! tag:x,2000:\n", i)
	}
	path := fmt.Sprintf("the keys that lead to a field have more than %d bytes together", limits.DocumentPathBytes)
	for _, test := range []struct {
		reason, text, want string
		most               int
	}{
		{"a long key, which each problem below it would repeat", "{? " + strings.Repeat("k", 200_000) + " : {" + strings.Repeat("a: 1, ", 5000) + "}}", path, 1},
		{"long keys in each other", nested, path, 1},
		{"keys that are long enough", "? " + strings.Repeat("k", 2000) + "\n: 1\n", "", 0},
		{"more problems than are shown", "[" + strings.Repeat("!!x 1, ", 50_000) + "]", "the tag !!x is not supported", limits.Violations + 1},
		{"keys that stand twice, more often than is shown", strings.Repeat("a: 1\n", 50_000), "the key stands twice", limits.Violations + 1},
		{"directives, each of which is compared with all before it", directives.String() + "---\na: b\n", fmt.Sprintf("more than %d directives", limits.DocumentDirectives), 1},
		{"a percent sign in a document", "a: |\n" + strings.Repeat("  %x\n", 1000), "", 0},
	} {
		problems := Each("f.yaml", []byte(test.text), func(*Document) {})
		if len(problems) > test.most || test.want == "" != (len(problems) == 0) || test.want != "" && !strings.Contains(problems[0].String(), test.want) {
			t.Errorf("%s: %d problems: %.300s", test.reason, len(problems), problems[:min(1, len(problems))].Error())
		}
	}
}
