package describe

import (
	"cmp"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/objects"
)

// Text describes a package.
func Text(r *Report, styles terminal.Styles) string {
	w := writerFor(styles)
	w.head(r)
	w.phases(r)
	w.config(r)
	w.images(r)
	w.rights(r)
	if r.Description != "" {
		w.title("Description")
		w.WriteString(strings.TrimRight(terminal.Text(r.Description), "\n") + "\n")
	}

	return w.String()
}

// writer collects the text of a report.
type writer struct{ terminal.Writer }

// writerFor returns a writer without text.
func writerFor(styles terminal.Styles) *writer { return &writer{terminal.Writer{Styles: styles}} }

// line adds a line. Its texts are escaped, because authors of packages choose them.
func (w *writer) line(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = terminal.Line(arg)
		case fmt.Stringer:
			args[i] = terminal.Line(arg.String())
		}
	}
	w.Line(fmt.Sprintf(format, args...))
}

// title adds the title of a section.
func (w *writer) title(text string) { w.WriteString("\n" + w.Styles.Strong(text) + "\n") }

// table adds a table whose first row is the head.
func (w *writer) table(rows [][]string) {
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = terminal.Line(rows[i][j])
		}
	}

	for i, line := range terminal.Table(rows) {
		if i == 0 {
			line = w.Styles.Faint(line)
		}
		w.WriteString("  " + line + "\n")
	}
}

// head adds the fields about the whole package.
func (w *writer) head(r *Report) {
	w.WriteString(w.Styles.Strong(terminal.Line(strings.TrimSpace(r.Name+" "+r.Version))) + "\n")
	kinds := map[string]string{"Cluster": "ClusterPackage", "Namespaced": "Package"}
	var as []string
	for _, scope := range r.Scopes {
		as = append(as, kinds[scope])
	}

	display := manifestsv1alpha1.PackageManifestDisplay{}
	if r.Display != nil {
		display = *r.Display
	}
	apis := make([]string, len(r.Provides))
	for i, api := range r.Provides {
		apis[i] = API(api)
	}

	var rows [][]string
	for _, row := range [][]string{
		{"Is", strings.TrimPrefix(display.Name+": "+display.ShortDescription, ": ")}, {"Requires", display.Requirements}, {"Support", display.Support},
		{"Provider", r.Provider}, {"Keywords", strings.Join(display.Keywords, ", ")}, {"Owners", owners(display.Owners)}, {"Links", links(display.Links)}, {"Installs as", strings.Join(as, " or ")}, {"Component", r.Component}, {"Components", strings.Join(r.Components, ", ")},
		{"Only", strings.Join(r.Constraints, "; ")}, {"Depends on", strings.Join(r.Dependencies, "; ")}, {"Provides", strings.Join(apis, ", ")}, {"Test cases", strings.Join(r.TestCases, ", ")},
	} {
		if row[1] = terminal.Line(row[1]); row[1] != "" {
			rows = append(rows, row)
		}
	}

	w.Rows("  ", rows)
}

// owners returns the owners in one line.
func owners(all []manifestsv1alpha1.PackageManifestOwner) string {
	texts := make([]string, len(all))
	for i, o := range all {
		if texts[i] = o.Name; o.Email != "" {
			texts[i] += " <" + o.Email + ">"
		}
	}
	return strings.Join(texts, ", ")
}

// links returns the links in one line.
func links(all []manifestsv1alpha1.PackageManifestLink) string {
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.Name + ": " + l.URL
	}
	return strings.Join(texts, ", ")
}

// phases adds the phases with their objects and probes.
func (w *writer) phases(r *Report) {
	w.title("Phases")
	for i, phase := range r.Phases {
		class := ""
		if phase.Class != "" {
			class = ", class " + phase.Class
		}
		w.line("  %d  %s%s", i+1, phase.Name, class)

		for _, o := range phase.Objects {
			kept := ""
			if o.Keep {
				kept = "  (kept when the package is deleted)"
			}
			kind := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
			w.line("     %s %s%s", kind, objects.Key{Namespace: o.Namespace, Name: o.Name}.NamespacedName(), kept)
			for _, probe := range o.Probes {
				w.WriteString("       " + w.Styles.Faint("waits for "+terminal.Line(probe)) + "\n")
			}
		}
	}

	if len(r.Phases) == 0 {
		w.line("  no objects")
	}
}

// config adds the keys of the configuration.
func (w *writer) config(r *Report) {
	w.title("Configuration")
	if len(r.Config) == 0 {
		w.line("  none")
		return
	}
	w.keys(r.Config)
}

// keys adds a table of keys.
func (w *writer) keys(keys []Key) {
	rows := [][]string{{"KEY", "TYPE", "DEFAULT", "DESCRIPTION"}}
	for _, key := range keys {
		value := plain(key.Default)
		if key.Required && len(key.Default) == 0 {
			value = "required"
		}
		description := key.Description
		if key.Allowed != "" {
			description = strings.TrimSpace(description + " [" + key.Allowed + "]")
		}
		rows = append(rows, []string{key.Key, key.Type, value, description})
	}

	w.table(rows)
}

// images adds a table of the manifest's images if it has any.
func (w *writer) images(r *Report) {
	if len(r.Images) == 0 {
		return
	}
	w.title("Images")
	rows := [][]string{{"NAME", "IMAGE", "DIGEST"}}
	for _, image := range r.Images {
		rows = append(rows, []string{image.Name, image.Image, cmp.Or(image.Digest, "not pinned")})
	}

	w.table(rows)
}

// rights adds the requested, granted and needed rights.
func (w *writer) rights(r *Report) {
	if r.Asks != nil {
		w.title("Requests these rights for its ServiceAccount " + r.Asks.ServiceAccount)
		w.rules("  ", r.Asks.Rules)
		w.line("  no object is written unless the ceiling of the manager, --permission-ceiling, includes them")
	}

	if len(r.Grants) > 0 {
		w.title("Gives these rights")
		for _, grant := range r.Grants {
			to := "to " + cmp.Or(strings.Join(grant.To, ", "), "nobody yet")
			w.line("  %s %s", grant.Role, to)
			if len(grant.Rules) == 0 {
				w.line("     the rights of that role, which the package does not contain")
			}
			w.rules("     ", grant.Rules)
		}
	}

	w.title("Needs these rights if a service account applies it")
	w.rules("  ", r.Needs)
	if len(r.Grants) > 0 {
		w.line("  and the rights that it gives to others")
	}
}

// rules adds a line for each rule.
func (w *writer) rules(indent string, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		on := strings.Join(Targets(rule.APIGroups, rule.Resources, rule.NonResourceURLs), ", ")
		if len(rule.ResourceNames) > 0 {
			on += fmt.Sprintf(" (only %s)", strings.Join(rule.ResourceNames, ", "))
		}
		w.line("%s%s: %s", indent, on, cmp.Or(strings.Join(rule.Verbs, ", "), "nothing"))
	}
}
