package describe

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"lockstep.run/lockstep/internal/cli/terminal"
)

// Options of the text for people.
type Options struct {
	Styles terminal.Styles
	// Width of the terminal; 0 means that lines may be of any length.
	Width int
}

// Text describes a package to a person.
func Text(r *Report, opts Options) string {
	w := &writer{opts: opts}
	w.head(r)
	w.phases(r)
	w.config(r)
	w.images(r)
	w.rights(r)
	return w.b.String()
}

type writer struct {
	b    strings.Builder
	opts Options
}

func (w *writer) line(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = terminal.Line(text)
		}
	}
	w.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (w *writer) title(text string) { w.b.WriteString("\n" + w.opts.Styles.Strong(text) + "\n") }

// table writes rows below the first one, which is the head, indented.
func (w *writer) table(rows [][]string) {
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = terminal.Line(rows[i][j])
		}
	}
	for i, line := range terminal.Table(rows) {
		if w.opts.Width > 0 {
			line = terminal.Truncate(line, w.opts.Width-2)
		}
		if i == 0 {
			line = w.opts.Styles.Faint(line)
		}
		w.b.WriteString("  " + line + "\n")
	}
}

func (w *writer) head(r *Report) {
	name := r.Name
	if r.Version != "" {
		name += " " + r.Version
	}
	w.b.WriteString(w.opts.Styles.Strong(terminal.Line(name)) + "\n")
	kinds := map[string]string{"Cluster": "ClusterPackage", "Namespaced": "Package"}
	var as []string
	for _, scope := range r.Scopes {
		as = append(as, kinds[scope])
	}
	rows := [][]string{}
	add := func(label, value string) {
		if value != "" {
			rows = append(rows, []string{label, terminal.Line(value)})
		}
	}
	if d := r.Display; d != nil {
		add("Is", strings.TrimPrefix(d.Name+": "+d.ShortDescription, ": "))
		add("Requires", d.Requirements)
		add("Support", d.Support)
	}
	add("Provider", r.Provider)
	add("Installs as", strings.Join(as, " or "))
	add("Component", r.Component)
	add("Components", strings.Join(r.Components, ", "))
	add("Only", strings.Join(r.Constraints, "; "))
	add("Depends on", strings.Join(r.Dependencies, "; "))
	add("Test cases", strings.Join(r.TestCases, ", "))
	for _, line := range terminal.Table(rows) {
		w.b.WriteString("  " + line + "\n")
	}
}

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
			w.line("     %s%s", objectName(o), kept)
			for _, probe := range o.Probes {
				w.b.WriteString("       " + w.opts.Styles.Faint("waits for "+terminal.Line(probe)) + "\n")
			}
		}
	}
	if len(r.Phases) == 0 {
		w.line("  no objects")
	}
}

func objectName(o Object) string {
	kind := o.Kind
	if group, _, grouped := strings.Cut(o.APIVersion, "/"); grouped {
		kind += "." + group
	}
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return kind + " " + name
}

func (w *writer) config(r *Report) {
	w.title("Configuration")
	if len(r.Config) == 0 {
		w.line("  none")
		return
	}
	rows := [][]string{{"KEY", "TYPE", "DEFAULT", "DESCRIPTION"}}
	for _, key := range r.Config {
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

func (w *writer) images(r *Report) {
	if len(r.Images) == 0 {
		return
	}
	w.title("Images")
	rows := [][]string{{"NAME", "IMAGE", "DIGEST"}}
	for _, image := range r.Images {
		digest := image.Digest
		if digest == "" {
			digest = "not pinned"
		}
		rows = append(rows, []string{image.Name, image.Image, digest})
	}
	w.table(rows)
}

func (w *writer) rights(r *Report) {
	if len(r.Grants) > 0 {
		w.title("Gives these rights")
		for _, grant := range r.Grants {
			to := "to nobody yet"
			if len(grant.To) > 0 {
				to = "to " + strings.Join(grant.To, ", ")
			}
			w.line("  %s %s", grant.Role, to)
			if len(grant.Rules) == 0 {
				w.line("     what that role allows; the package does not bring it")
			}
			w.rules("     ", grant.Rules)
		}
	}
	w.title("Needs these rights, where a service account applies it")
	w.rules("  ", r.Needs)
	if len(r.Grants) > 0 {
		w.line("  and what it gives to others")
	}
}

func (w *writer) rules(indent string, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		verbs, on := ruleText(rule)
		w.line("%s%s: %s", indent, on, verbs)
	}
}
