package carvel

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Step is one tool that makes objects of what the steps before it have made, or of files.
type Step struct {
	// Tool is ytt or helm; empty for one of kbld, which the lock of a bundle carries out.
	Tool string
	Args []string
	// Values means that given values are applied here: before the first step that takes some.
	Values bool
	// Input means that it reads the output of the steps before.
	Input bool
}

// Source is what a version is fetched from: an image, or files.
type Source struct {
	Image string
	Files map[string]string
}

// Plan reads how kapp-controller makes the objects of a version, in the form of the App of its template. The error names
// all that cannot be done here.
func Plan(app map[string]any, name, namespace string) (Source, []Step, []string, error) {
	p := &planner{name: name, namespace: namespace}
	source := p.fetch(list(app, "fetch"))
	for n, step := range list(app, "template") {
		p.template(fmt.Sprintf("template[%d]", n), step)
	}
	for n, step := range list(app, "deploy") {
		kapp, ok := step["kapp"].(map[string]any)
		for _, key := range sortedKeys(kapp) {
			p.notes = append(p.notes, fmt.Sprintf("deploy[%d].kapp.%s has no effect", n, key))
		}
		if !ok && step["kapp"] != nil || n > 0 || len(step) > 1 {
			p.refuse(fmt.Sprintf("deploy[%d]", n))
		}
	}
	if len(p.refused) > 0 {
		return source, nil, nil, fmt.Errorf("it asks for %s, which cannot be rendered here: render it by kapp-controller's own tools, and make a package by kubectl package kickstart", strings.Join(p.refused, ", "))
	}
	return source, p.steps, p.notes, nil
}

type planner struct {
	name, namespace string
	// chart is where helm has the chart from, where the version fetches one.
	chart          []string
	steps          []Step
	valued         bool
	notes, refused []string
}

func (p *planner) refuse(what string) { p.refused = append(p.refused, what) }

func list(m map[string]any, key string) (out []map[string]any) {
	items, _ := m[key].([]any)
	for _, item := range items {
		step, _ := item.(map[string]any)
		out = append(out, step)
	}
	return out
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (p *planner) fetch(steps []map[string]any) (s Source) {
	if len(steps) != 1 || len(steps[0]) != 1 {
		p.refuse(fmt.Sprintf("%d fetches", len(steps)))
		return s
	}
	for tool, value := range steps[0] {
		from, _ := value.(map[string]any)
		if tool == "helmChart" {
			p.fetchChart("fetch[0].helmChart", from)
			return s
		}
		known := map[string]string{"imgpkgBundle": "image", "image": "url", "inline": "paths"}[tool]
		if known == "" || len(from) != 1 || from[known] == nil {
			p.refuse("fetch[0]." + tool + " " + strings.Join(sortedKeys(from), ", "))
			return s
		}
		if tool != "inline" {
			s.Image, _ = from[known].(string)
			return s
		}
		s.Files = map[string]string{}
		paths, _ := from[known].(map[string]any)
		for file, text := range paths {
			s.Files[file], _ = text.(string)
		}
	}
	return s
}

// fetchChart makes helm itself fetch a chart of a repository.
func (p *planner) fetchChart(at string, from map[string]any) {
	repository, _ := from["repository"].(map[string]any)
	if !p.rest(at, from, "name", "version", "repository") || !p.rest(at+".repository", repository, "url") {
		return
	}
	name, _ := from["name"].(string)
	version, _ := from["version"].(string)
	url, _ := repository["url"].(string)
	for _, text := range []string{name, version, url} {
		if strings.HasPrefix(text, "-") {
			p.refuse(at)
			return
		}
	}
	if name == "" || !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "oci://") {
		p.refuse(at + " of no https or oci repository")
		return
	}
	if strings.HasPrefix(url, "oci://") {
		p.chart = []string{strings.TrimSuffix(url, "/") + "/" + name}
	} else {
		p.chart = []string{name, "--repo", url}
	}
	if version != "" {
		p.chart = append(p.chart, "--version", version)
	}
}

func (p *planner) template(at string, step map[string]any) {
	for _, tool := range sortedKeys(step) {
		options, _ := step[tool].(map[string]any)
		switch tool {
		case "ytt":
			p.ytt(at+".ytt", options)
		case "helmTemplate":
			p.helm(at+".helmTemplate", options)
		case "kbld":
			if p.rest(at+".kbld", options, "paths") {
				p.steps = append(p.steps, Step{})
			}
		default:
			p.refuse(at + "." + tool)
		}
	}
}

// rest refuses the options of a step that are not known.
func (p *planner) rest(at string, options map[string]any, known ...string) bool {
	before := len(p.refused)
	for _, key := range sortedKeys(options) {
		if !slices.Contains(known, key) {
			p.refuse(at + "." + key)
		}
	}
	return len(p.refused) == before
}

// paths returns those of a step, all within its files; "-" is the output of the steps before.
func (p *planner) paths(at string, options map[string]any) (paths []string, input bool) {
	items, _ := options["paths"].([]any)
	for _, item := range items {
		file, _ := item.(string)
		switch {
		case file == "-":
			input = true
		case !filepath.IsLocal(file):
			p.refuse(fmt.Sprintf("%s.paths %q", at, file))
		default:
			paths = append(paths, "./"+filepath.Clean(file)) // never an option
		}
	}
	return paths, input
}

func (p *planner) ytt(at string, options map[string]any) {
	if !p.rest(at, options, "paths", "ignoreUnknownComments", "strict", "fileMarks") {
		return
	}
	paths, input := p.paths(at, options)
	if len(paths) == 0 && !input {
		if input = len(p.steps) > 0; !input {
			paths = []string{"."}
		}
	}
	var args []string
	for _, file := range paths {
		args = append(args, "--file", file)
	}
	if input {
		args = append(args, "--file", "-")
	}
	if options["ignoreUnknownComments"] == true {
		args = append(args, "--ignore-unknown-comments")
	}
	if options["strict"] == true {
		args = append(args, "--strict")
	}
	marks, _ := options["fileMarks"].([]any)
	for _, mark := range marks {
		text, _ := mark.(string)
		args = append(args, "--file-mark", text)
	}
	p.steps = append(p.steps, Step{Tool: "ytt", Args: args, Values: !p.valued, Input: input})
	p.valued = true
}

func (p *planner) helm(at string, options map[string]any) {
	if !p.rest(at, options, "path", "name", "namespace") {
		return
	}
	chart, _ := options["path"].(string)
	if chart == "" {
		chart = "."
	}
	if !filepath.IsLocal(chart) {
		p.refuse(fmt.Sprintf("%s.path %q", at, chart))
		return
	}
	name, namespace := p.name, p.namespace
	if text, _ := options["name"].(string); text != "" {
		name = text
	}
	if text, _ := options["namespace"].(string); text != "" {
		namespace = text
	}
	args := []string{"template", name, "./" + filepath.Clean(chart), "--include-crds"}
	if p.chart != nil {
		args = slices.Concat([]string{"template", name}, p.chart, []string{"--include-crds"})
	}
	if namespace != "" {
		args = append(args, "--namespace", namespace)
	}
	if strings.HasPrefix(name, "-") || strings.HasPrefix(namespace, "-") {
		p.refuse(at + ".name")
		return
	}
	p.steps = append(p.steps, Step{Tool: "helm", Args: args, Values: !p.valued})
	p.valued = true
}

// Render runs the tools of steps, as they are on the PATH, in a folder, and returns what they make. values are files.
func Render(ctx context.Context, dir string, steps []Step, values []string) ([]byte, error) {
	var made []byte
	for _, step := range steps {
		if step.Tool == "" {
			continue
		}
		args := slices.Clone(step.Args)
		if step.Values {
			flag := map[string]string{"ytt": "--data-values-file", "helm": "--values"}[step.Tool]
			for _, file := range values {
				args = append(args, flag, file)
			}
		}
		out, err := run(ctx, dir, step, args, made)
		if err != nil {
			return nil, err
		}
		if step.Tool == "helm" && len(made) > 0 {
			out = slices.Concat(made, []byte("\n---\n"), out)
		}
		made = out
	}
	return made, nil
}

func run(ctx context.Context, dir string, step Step, args []string, input []byte) ([]byte, error) {
	program, err := exec.LookPath(step.Tool)
	if err != nil {
		where := map[string]string{"ytt": "https://carvel.dev/ytt", "helm": "https://helm.sh"}[step.Tool]
		return nil, fmt.Errorf("%s is not on the PATH, and the package is rendered by it: install it from %s", step.Tool, where)
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var out, failure bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &failure
	if step.Input {
		cmd.Stdin = bytes.NewReader(input)
	}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", step.Tool, strings.Join(args, " "), err, bytes.TrimSpace(failure.Bytes()))
	}
	return out.Bytes(), nil
}
