package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// Formats of -o that all commands have.
const (
	jsonFormat = "json"
	yamlFormat = "yaml"
	// Names is the format of kubectl's -o name, for a [List].
	Names = "name"
)

// Flags are -o of a command.
type Flags struct {
	format  string
	formats []string
}

// Add adds the flags to a command. more are formats in addition to json and yaml, such as [Names].
func (f *Flags) Add(cmd *cobra.Command, more ...string) {
	f.formats = append([]string{jsonFormat, yamlFormat}, more...)
	cmd.Flags().StringVarP(&f.format, "output", "o", "", alternatives(f.formats)+", instead of text for people")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.formats, cobra.ShellCompDirectiveNoFileComp))
}

// Check returns an error of usage.
func (f *Flags) Check() error {
	if f.format != "" && !slices.Contains(f.formats, f.format) {
		return fmt.Errorf("unknown output format %q: choose %s", f.format, alternatives(f.formats))
	}
	return nil
}

// Wanted reports whether structured output is requested.
func (f *Flags) Wanted() bool { return f.format != "" }

// Is reports whether one of the further formats is requested.
func (f *Flags) Is(format string) bool { return f.format == format }

// Write writes a value as requested, or else as text.
func (f *Flags) Write(w io.Writer, value any, text func(terminal.Styles) string) error {
	if f.Wanted() {
		return f.Print(w, value)
	}
	_, err := io.WriteString(w, text(terminal.StylesFor(w)))
	return err
}

// Print writes a value in the format of the flags, JSON by default.
func (f *Flags) Print(w io.Writer, value any) error {
	list, isList := value.(List)
	switch {
	case f.format == yamlFormat && isList:
		return writeYAML(w, list.Items)
	case f.format == yamlFormat:
		return terminal.WriteYAML(w, value)
	case f.format != Names:
		return terminal.WriteJSON(w, value)
	case !isList:
		return fmt.Errorf("this result cannot be printed as %s", f.format)
	}

	for _, name := range list.names() {
		fmt.Fprintln(w, terminal.Line(name))
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

// List is a list of objects. As JSON it is a List of Kubernetes, and as YAML one document for each
// object. Both can be applied.
type List struct{ Items []any }

// MarshalJSON implements json.Marshaler.
func (l List) MarshalJSON() ([]byte, error) {
	items := l.Items
	// An empty list is valid for kubectl, and null is not.
	if items == nil {
		items = []any{}
	}
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{"v1", "List", items})
}

// names returns names as kubectl prints them, such as deployment.apps/web.
func (l List) names() []string {
	var names []string
	for _, item := range l.Items {
		var u unstructured.Unstructured
		raw, err := json.Marshal(item)
		if err != nil || json.Unmarshal(raw, &u.Object) != nil {
			continue
		}
		// kubectl writes names in lower case, with the group unless it is the core one.
		kind := u.GroupVersionKind().GroupKind()
		kind.Kind = strings.ToLower(kind.Kind)
		names = append(names, kind.String()+"/"+u.GetName())
	}

	return names
}

// YAML returns the flags of -o yaml.
func YAML() *Flags { return &Flags{format: yamlFormat} }
