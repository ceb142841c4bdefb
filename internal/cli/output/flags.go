package output

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cli/terminal"
)

const (
	jsonFormat = "json"
	yamlFormat = "yaml"
	// Names is the format of kubectl's -o name, for a [List].
	Names = "name"
)

// Flags are -o and --query of a command.
type Flags struct {
	format  string
	query   string
	formats []string
	program *query
}

// Add adds the flags to a command, which has further formats beside json and
// yaml, such as [Names].
func (f *Flags) Add(cmd *cobra.Command, more ...string) {
	f.formats = append([]string{jsonFormat, yamlFormat}, more...)
	cmd.Flags().StringVarP(&f.format, "output", "o", "", alternatives(f.formats)+", instead of text for people")
	cmd.Flags().StringVar(&f.query, "query", "", "`jq` expression for what is printed; sees what -o json prints")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.formats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("query", cobra.NoFileCompletions)
}

// Check reads the flags. Its error is one of usage.
func (f *Flags) Check() (err error) {
	if f.format != "" && !slices.Contains(f.formats, f.format) {
		return fmt.Errorf("unknown output format %q: choose %s", f.format, alternatives(f.formats))
	}
	if f.query == "" {
		return nil
	}
	if f.format != "" && f.format != jsonFormat && f.format != yamlFormat {
		return fmt.Errorf("--query makes JSON or YAML, not -o %s", f.format)
	}
	f.program, err = compile(f.query)
	return err
}

// Wanted reports whether structured output is requested.
func (f *Flags) Wanted() bool { return f.format != "" || f.query != "" }

// ByName reports whether names alone are requested.
func (f *Flags) ByName() bool { return f.format == Names }

// Is reports whether a further format is requested.
func (f *Flags) Is(format string) bool { return f.format == format }

// Write writes a value as requested, or else as text.
func (f *Flags) Write(ctx context.Context, w io.Writer, value any, text func(terminal.Styles) string) error {
	if f.Wanted() {
		return f.Print(ctx, w, value)
	}
	_, err := io.WriteString(w, text(terminal.StylesFor(w)))
	return err
}

// Print writes a value in the format of the flags, JSON by default. Without -o, results of
// --query that are text are written as they are, for use in scripts.
func (f *Flags) Print(ctx context.Context, w io.Writer, value any) error {
	if f.program != nil {
		results, err := f.program.run(ctx, value)
		if err != nil {
			return fmt.Errorf("--query: %w", err)
		}
		return f.printResults(w, results)
	}
	list, isList := value.(List)
	switch {
	case f.format == yamlFormat && isList:
		return writeYAML(w, list.Items)
	case f.format == yamlFormat:
		return terminal.WriteYAML(w, value)
	case f.format != Names:
		return terminal.WriteJSON(w, value)
	case !isList:
		return fmt.Errorf("this cannot be printed as %s", f.format)
	}
	for _, name := range list.names() {
		fmt.Fprintln(w, terminal.Line(name))
	}
	return nil
}

func (f *Flags) printResults(w io.Writer, results []any) error {
	documents := make([]any, len(results))
	for i, result := range results {
		raw, err := gojq.Marshal(result) // jq has numbers that JSON has not
		if err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		documents[i] = json.RawMessage(raw)
	}
	if f.format == yamlFormat {
		return writeYAML(w, documents)
	}
	for i, result := range results {
		var err error
		if text, isText := result.(string); isText && f.format == "" {
			_, err = fmt.Fprintln(w, terminal.Text(text))
		} else {
			err = terminal.WriteJSON(w, documents[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeYAML writes one document for each value.
func writeYAML(w io.Writer, values []any) error {
	for i, value := range values {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		if err := terminal.WriteYAML(w, value); err != nil {
			return err
		}
	}
	return nil
}

// alternatives joins words as "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// List are objects: a List of Kubernetes as JSON, and as YAML one document for
// each, so that either can be applied.
type List struct{ Items []any }

// MarshalJSON implements json.Marshaler.
func (l List) MarshalJSON() ([]byte, error) {
	items := l.Items
	if items == nil {
		items = []any{}
	}
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{"v1", "List", items})
}

// names are those of kubectl, such as deployment.apps/web.
func (l List) names() []string {
	var names []string
	for _, item := range l.Items {
		var u unstructured.Unstructured
		raw, err := json.Marshal(item)
		if err != nil || json.Unmarshal(raw, &u.Object) != nil {
			continue
		}
		kind := u.GroupVersionKind().GroupKind()
		kind.Kind = strings.ToLower(kind.Kind)
		names = append(names, kind.String()+"/"+u.GetName())
	}
	return names
}

// YAML are the flags of -o yaml.
func YAML() *Flags { return &Flags{format: yamlFormat} }
