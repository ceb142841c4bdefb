package kickstart

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader"
)

// write creates a file for every object: <phase>/<name>.<kind>.yaml.
func (m *maker) write(files loader.Files, all []*object) error {
	for _, o := range all {
		// The phase is an annotation in the file, so that the author can change it.
		o.annotate(corev1alpha1.PhaseAnnotation, o.phase)
		data, templated, err := encode(o.value)
		if err != nil {
			return fmt.Errorf("write %s: %w", o, err)
		}
		p := o.phase + "/" + cmp.Or(fileName(cmp.Or(o.fileName, o.name())), "object") + "." + fileName(o.gvk.Kind) + ".yaml"
		if templated {
			p += ".gotmpl"
		}
		p = vacant(files, p)
		files[p] = data
	}

	return nil
}

// vacant returns a path for a new file, with a number if the path is taken. A file and its template
// render to one path.
func vacant(files loader.Files, p string) string {
	plain, template := strings.CutSuffix(p, ".gotmpl")
	base := strings.TrimSuffix(plain, ".yaml")
	for i := 2; files[plain] != nil || files[plain+".gotmpl"] != nil; i++ {
		plain = fmt.Sprintf("%s-%d.yaml", base, i)
	}
	if template {
		return plain + ".gotmpl"
	}
	return plain
}

// unsafeInNames matches the characters that are replaced in names of files.
var unsafeInNames = regexp.MustCompile(`[^a-z0-9.-]`)

// fileName returns a name without characters that some file systems refuse.
func fileName(name string) string {
	// Most file systems allow 255 bytes, with the ending and a number.
	const longest = 150
	name = unsafeInNames.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), longest)], "-.")
}

// encode writes a value as YAML. The result is a template if it has an expression.
func encode(v any) (data []byte, templated bool, err error) {
	// token replaces expressions in the YAML, so it must not occur in the value.
	token := "expression"
	fields.Walk(v, func(_ map[string]any, key string, value any) {
		for strings.Contains(key, token) || strings.Contains(fields.Text(value), token) {
			token += "0"
		}
	})

	var expressions []string
	fields.Walk(v, func(parent map[string]any, key string, value any) {
		if e, ok := value.(expression); ok {
			name := token + "-" + strconv.Itoa(len(expressions)/2) + "-"
			parent[key] = name
			expressions = append(expressions, name, "{{ "+string(e)+" | toJson }}")
		}
	})

	// The YAML is in the style of kubectl.
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := cmp.Or(enc.Encode(v), enc.Close()); err != nil || len(expressions) == 0 {
		return out.Bytes(), false, err
	}

	// Braces of the input are text, and a template would evaluate them.
	return []byte(strings.NewReplacer(append(expressions, "{{", `{{ "{{" }}`)...).Replace(out.String())), true, nil
}
