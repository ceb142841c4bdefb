package render

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/bmatcuk/doublestar/v4"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/expression"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Suffix is the suffix of templates.
const Suffix = ".gotmpl"

// Input is the input of a rendering.
type Input struct {
	Files archive.Files
	// Context is the context of templates, as JSON values with numbers as float64.
	Context     map[string]any
	Expressions *expression.Evaluator
	Paths       []manifestsv1alpha1.PackageManifestPath
	// Strict turns some warnings into errors.
	Strict bool
	// PathRule returns the position of the i-th path rule.
	PathRule func(i int) violation.Violation
}

// Output is a rendered package.
type Output struct {
	// Files have templates replaced by their output. Excluded and helper files are left out.
	Files    archive.Files
	Rendered map[string]bool
	Warnings violation.Violations
}

// renderer is one rendering: its input, its parsed templates, and the work that it has done so far.
type renderer struct {
	ctx       context.Context
	in        Input
	templates *template.Template
	sources   map[string]bool
	problems  violation.Violations
	warnings  violation.Violations

	steps, depth int
	work         int64
	rendered     map[string][]byte
	running      map[string]bool
	// alone means that the template belongs to no package.
	alone bool
	// unset are the empty labels and annotations of each copy of the context, by address.
	unset map[uintptr]map[string]any
}

// errRenderTime is the cause of the context after limits.RenderTime.
var errRenderTime = errors.New("render time")

// IsHelper reports whether a file only serves others: its name starts with an underscore.
func IsHelper(p string) bool { return strings.HasPrefix(path.Base(p), "_") }

// Render renders a package.
func Render(ctx context.Context, in Input) (*Output, violation.Violations) {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.RenderTime, errRenderTime)
	defer cancel()
	r := &renderer{ctx: ctx, in: in, sources: map[string]bool{}, rendered: map[string][]byte{}, running: map[string]bool{}, unset: map[uintptr]map[string]any{}}
	excluded := r.excluded()
	if len(r.problems) == 0 {
		r.parse()
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}

	out := &Output{Files: archive.Files{}, Rendered: map[string]bool{}}
	total := 0
	for _, p := range in.Files.Paths() {
		target := strings.TrimSuffix(p, Suffix)
		switch {
		case excluded[p] || IsHelper(p):
			continue
		case !r.sources[p]:
			if !r.sources[p+Suffix] {
				out.Files[p] = in.Files[p]
			}
			continue
		}
		if _, both := in.Files[target]; both {
			r.warn(violation.Violation{Reason: violation.ReasonTemplate, Path: p}.Because("Delete one of them.", "the template replaces the file %s", target))
		}
		data, err := r.file(p)
		if err != nil {
			r.problems = append(r.problems, r.problem(p, err))
			// The rendering does not continue after a limit.
			if _, isLimit := errors.AsType[*limitError](err); isLimit || ctx.Err() != nil {
				break
			}
			continue
		}
		if total += len(data); total > limits.PackageBytes {
			r.problems = append(r.problems, violation.Violation{Reason: violation.ReasonLimit, Path: p}.Because("", "the rendered files have more than %d bytes", limits.PackageBytes))
			break
		}
		out.Files[target], out.Rendered[target] = data, true
	}

	out.Warnings = r.warnings
	return out, r.problems
}

// warn reports a problem, which is an error only in a strict check.
func (r *renderer) warn(v violation.Violation) {
	if r.in.Strict {
		r.problems = append(r.problems, v)
		return
	}
	r.warnings = append(r.warnings, v)
}

// excluded returns the files that a path rule leaves out.
func (r *renderer) excluded() map[string]bool {
	out := map[string]bool{}
	for i, rule := range r.in.Paths {
		keep, err := r.in.Expressions.Bool(r.ctx, rule.Expression)
		if err != nil {
			r.problems = append(r.problems, r.in.PathRule(i).Because("", "%v", err))
			continue
		}
		if keep {
			continue
		}
		for p := range r.in.Files {
			if ok, err := doublestar.Match(rule.Glob, strings.TrimSuffix(p, Suffix)); err == nil && ok {
				out[p] = true
			}
		}
	}

	return out
}

// parse parses all templates with the injected nodes. A file with an error does not hide errors of
// the others.
func (r *renderer) parse() {
	var paths []string
	for _, p := range r.in.Files.Paths() {
		if r.sources[p] = strings.HasSuffix(p, Suffix); r.sources[p] {
			paths = append(paths, p)
		}
	}

	r.templates = template.New("").Option("missingkey=error")
	if len(paths) == 0 {
		return
	}

	injected, err := newInjected()
	if err != nil {
		r.problems = append(r.problems, r.problem("", err))
		return
	}

	functions := r.functions()
	// The functions of injected nodes, and index, need no measuring.
	r.templates.Funcs(functions).Funcs(template.FuncMap{
		"index": r.index, funcEnter: r.enter, funcLeave: r.leave, funcOut: r.out,
		funcTick: func() (string, error) { return "", r.step() }, // at the start of each iteration
	})
	trees, definedIn := map[string]*parse.Tree{}, map[string]string{}
	code := 0
	for _, p := range paths {
		text := string(r.in.Files[p])
		n, err := scan(text)
		if code += n; err == nil && code > limits.TemplateCodeBytes {
			err = limitf("the templates of the package have more than %d bytes between {{ and }}", limits.TemplateCodeBytes)
		}
		var found map[string]*parse.Tree
		if err == nil {
			found, err = parse.Parse(p, text, "", "", functions, builtins)
		}
		if err != nil {
			r.problems = append(r.problems, r.problem(p, err))
			if code > limits.TemplateCodeBytes {
				return
			}
			continue
		}
		r.define(p, found, trees, definedIn)
	}

	for name, tree := range trees {
		injected.inject(tree)
		if _, err := r.templates.AddParseTree(name, tree); err != nil {
			r.problems = append(r.problems, r.problem(definedIn[name], err))
		}
	}
}

// define adds the templates of one file. The last definition that is not empty wins.
func (r *renderer) define(p string, found, trees map[string]*parse.Tree, definedIn map[string]string) {
	for name, tree := range found {
		old := trees[name]
		if old != nil && parse.IsEmptyTree(tree.Root) && name != p {
			continue
		}
		if old != nil && !parse.IsEmptyTree(old.Root) {
			r.warn(violation.Violation{Reason: violation.ReasonTemplate, Path: p}.Because("Rename one of them.", "the template %q is defined in %s as well", name, definedIn[name]))
		}
		trees[name], definedIn[name] = tree, p
	}
}

// file executes a template once, and caches its output.
func (r *renderer) file(p string) ([]byte, error) {
	if data, ok := r.rendered[p]; ok {
		return data, nil
	}
	if r.running[p] {
		return nil, fmt.Errorf("the file %q needs its own output", strings.TrimSuffix(p, Suffix))
	}

	r.running[p] = true
	defer delete(r.running, p)
	if err := r.ctx.Err(); err != nil {
		return nil, r.interrupted()
	}

	out := &buffer{limit: limits.FileBytes}
	if len(r.running) == 1 {
		r.depth = 0
	}
	if err := r.templates.ExecuteTemplate(out, p, r.context()); err != nil {
		return nil, err
	}

	r.rendered[p] = append([]byte{}, out.Bytes()...)
	return r.rendered[p], nil
}

// buffer collects output up to a limit, so that a template ends at the write that exceeds it.
type buffer struct {
	bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, limitf("the output has more than %d bytes", b.limit)
	}
	return b.Buffer.Write(p)
}

var (
	// These match errors of text/template, which have no structure.
	position   = regexp.MustCompile(`^template: ([^:]+):(\d+)(?::\d+)?: (?:executing "[^"]*" )?`)
	missingKey = regexp.MustCompile(`at <([^>]*)>: map has no entry for key "([^"]*)"`)
)

// problem moves file and line from the text of an error to the violation, and adds a remedy for a
// missing key.
func (r *renderer) problem(p string, err error) violation.Violation {
	v := violation.Violation{Reason: violation.ReasonTemplate, Path: p, Details: err.Error()}
	var own *limitError
	if errors.As(err, &own) {
		v.Reason = violation.ReasonLimit
	}

	if m := position.FindStringSubmatch(v.Details); m != nil && (m[1] == p || r.sources[m[1]]) {
		v.Path = m[1]
		v.Line, _ = strconv.Atoi(m[2])
		v.Details = v.Details[len(m[0]):]
	}

	if own != nil {
		v.Details = own.text
	}
	if m := missingKey.FindStringSubmatch(v.Details); m != nil {
		v.Remedy = r.missing(m[1], m[2])
	}

	return v
}

// missing returns the remedy for a key that the context lacks; a key of the configuration gets a
// suggestion.
func (r *renderer) missing(expression, key string) string {
	const guard = "Guard it with hasKey, dig or default."
	if r.alone {
		return guard
	}
	if i := strings.Index(expression, ".config."); i < 0 || !strings.HasPrefix(expression[i+len(".config."):], key) {
		return guard
	}
	config, _ := r.in.Context["config"].(map[string]any)
	return violation.Suggest(key, sortedKeys(config),
		"Set it in spec.config, or give it a default in the schema of the manifest. "+guard)
}
