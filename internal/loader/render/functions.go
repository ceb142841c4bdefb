package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// sprigNames are sprig's functions, except those that access time, randomness, environment, files
// or the network.
var sprigNames = strings.Fields(`
hello fail
abbrev abbrevboth trunc trim trimAll trimSuffix trimPrefix upper lower title untitle substr repeat nospace initials
swapcase snakecase camelcase kebabcase wrap wrapWith contains hasPrefix hasSuffix quote squote cat indent nindent
replace plural toString sha1sum sha256sum adler32sum
atoi int64 int float64 seq toDecimal
split splitList splitn toStrings join sortAlpha
until untilStep
add1 add sub div mod mul add1f addf subf divf mulf biggest max min maxf minf ceil floor round
default empty coalesce all any compact mustCompact fromJson toJson toPrettyJson toRawJson mustFromJson mustToJson
mustToPrettyJson mustToRawJson ternary deepCopy mustDeepCopy
typeOf typeIs typeIsLike kindOf kindIs deepEqual
base dir clean ext isAbs
b64enc b64dec b32enc b32dec
tuple list dict get set unset hasKey pluck keys pick omit merge mergeOverwrite mustMerge mustMergeOverwrite values
append mustAppend push mustPush prepend mustPrepend first mustFirst rest mustRest last mustLast initial mustInitial
reverse mustReverse uniq mustUniq without mustWithout has mustHas slice mustSlice concat dig chunk mustChunk
semver semverCompare
regexMatch mustRegexMatch regexFindAll mustRegexFindAll regexFind mustRegexFind regexReplaceAll mustRegexReplaceAll
regexReplaceAllLiteral mustRegexReplaceAllLiteral regexSplit mustRegexSplit regexQuoteMeta
urlParse urlJoin
`)

// functions returns all functions of templates, wrapped to stay within limits.
func (r *renderer) functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	funcs := template.FuncMap{}
	for _, name := range sprigNames {
		funcs[name] = r.wrap(name, all[name])
	}
	for name, fn := range map[string]any{
		// Sprig's versions have a random order.
		"keys": sortedKeys, "values": sortedValues,
		// These are text/template's functions, with measuring.
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,

		"include": r.include, "toYAML": toYAML, "fromYAML": r.fromYAML, "b64decMap": b64decMap,
		"getFile": r.getFile, "getFileGlob": r.getFileGlob, "cel": r.cel,
	} {
		funcs[name] = r.wrap(name, fn)
	}
	for _, name := range ofPackages {
		if r.alone {
			delete(funcs, name)
		}
	}
	return funcs
}

// Functions returns the sorted names of all functions, except the template language's.
func Functions() []string {
	return slices.Sorted(maps.Keys((&renderer{}).functions()))
}

// sortedKeys is sprig's keys in a fixed order, so that equal input gives equal output.
func sortedKeys(dicts ...map[string]any) []string {
	var out []string
	for _, d := range dicts {
		out = append(out, slices.Sorted(maps.Keys(d))...)
	}
	return out
}

// sortedValues is sprig's values in the order of their keys.
func sortedValues(dict map[string]any) []any {
	out := make([]any, 0, len(dict))
	for _, k := range sortedKeys(dict) {
		out = append(out, dict[k])
	}
	return out
}

// toYAML writes a value without the final newline, as in Helm, so that it can be indented.
func toYAML(v any) (string, error) {
	data, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(data), "\n"), err
}

// fromYAML parses the first document of a text. Numbers are float64.
func (r *renderer) fromYAML(text any) (any, error) {
	var data []byte
	switch text := text.(type) {
	case string:
		data = []byte(text)
	case []byte:
		data = text
	default:
		return nil, fmt.Errorf("want text, got %T", text)
	}

	var value any
	found := false
	problems := document.EachWithDoubts("", data, func(d *document.Document) {
		if found {
			return
		}
		value, found = d.Value, true
		for _, v := range d.Doubts {
			v.Document, v.Details = 0, fmt.Sprintf("fromYAML: %s (line %d of the text)", v.Details, v.Line)
			v.Line = 0
			r.warn(v)
		}
	})
	if len(problems) > 0 {
		p := problems[0]
		if p.Reason == violation.ReasonLimit {
			return nil, limitf("%s", p.Details)
		}
		return nil, fmt.Errorf("line %d: %s", p.Line, p.Details)
	}

	return jsonValues(value)
}

// b64decMap decodes the values of a mapping, such as the data of a Secret. It drops values that are
// not text.
func b64decMap(m map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(m))
	for _, key := range sortedKeys(m) {
		text, ok := m[key].(string)
		if !ok {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("the value of %q is not base64", key)
		}
		out[key] = string(data)
	}

	return out, nil
}

// include executes a named template and returns its output, which the statement template cannot
// pass to a function.
func (r *renderer) include(name string, data any) (string, error) {
	t := r.templates.Lookup(name)
	if t == nil {
		return "", fmt.Errorf("no template %q", name)
	}
	out := &buffer{limit: limits.TemplateValueBytes}
	err := t.Execute(out, data)
	return out.String(), err
}

// getFile returns a file of the package, rendered if it is a template.
func (r *renderer) getFile(path string) (string, error) {
	data, ok := r.in.Files[path]
	if r.sources[path+Suffix] {
		var err error
		if data, err = r.file(path + Suffix); err != nil {
			return "", err
		}
	} else if !ok {
		return "", fmt.Errorf("file not found: %q", path)
	}

	if len(data) > limits.TemplateValueBytes {
		return "", limitf("the file %q has %d bytes; the limit for templates is %d", path, len(data), limits.TemplateValueBytes)
	}

	return string(data), nil
}

// getFileGlob returns the unrendered files of the package, by path.
func (r *renderer) getFileGlob(pattern string) (map[string]string, error) {
	match, err := compileGlob(pattern)
	if err != nil {
		return nil, err
	}

	out, total := map[string]string{}, 0
	for path, data := range r.in.Files {
		if !match.MatchString(path) {
			continue
		}
		if total += len(data); total > limits.TemplateValueBytes {
			return nil, limitf("the files that %q matches have more than %d bytes", pattern, limits.TemplateValueBytes)
		}
		out[path] = string(data)
	}

	return out, nil
}

// cel evaluates an expression in the context of the package.
func (r *renderer) cel(text string) (bool, error) {
	if r.in.Expressions == nil {
		return false, errors.New("no expressions here")
	}
	return r.in.Expressions.Bool(r.ctx, text)
}
