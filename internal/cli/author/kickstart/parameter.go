package kickstart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Parameter names fields that become configuration.
type Parameter string

// What can become configuration.
const (
	Namespaces    Parameter = "namespaces"
	Replicas      Parameter = "replicas"
	Tolerations   Parameter = "tolerations"
	NodeSelectors Parameter = "nodeselectors"
	Resources     Parameter = "resources"
	Env           Parameter = "env"
	Images        Parameter = "images"
)

// Parameters are all of them.
var Parameters = []Parameter{Namespaces, Replicas, Tolerations, NodeSelectors, Resources, Env, Images}

// ParseParameters reads a list of names; all stands for all of them.
func ParseParameters(names []string) ([]Parameter, error) {
	var out []Parameter
	for _, n := range names {
		switch p := Parameter(strings.ToLower(n)); {
		case p == "all":
			return slices.Clone(Parameters), nil
		case slices.Contains(Parameters, p):
			out = append(out, p)
		default:
			return nil, fmt.Errorf("%q cannot be made a parameter: choose of namespaces, replicas, tolerations, nodeselectors, resources, env, images, all", n)
		}
	}
	return out, nil
}

func (m *maker) wants(p Parameter) bool { return slices.Contains(m.opts.Parameters, p) }

// setting is one value of the configuration, or several with names.
type setting struct {
	schema map[string]any // of a value
	names  []string
	byName map[string]*setting
	keys   map[string]string // the identifier of each name
}

// at returns the settings below a name, and their path for templates.
func (s *setting) at(path *string, name string) *setting {
	if s.byName == nil {
		s.byName, s.keys = map[string]*setting{}, map[string]string{}
	}
	key, known := s.keys[name]
	if !known {
		key = identifier(name)
		for i := 2; s.byName[key] != nil; i++ {
			key = identifier(name) + strconv.Itoa(i)
		}
		s.keys[name] = key
		s.names = append(s.names, key)
		s.byName[key] = &setting{}
	}
	*path += "." + key
	return s.byName[key]
}

// openAPI is the schema of the settings. Each object has a default, so that the
// defaults within it apply.
func (s *setting) openAPI() map[string]any {
	if s.schema != nil {
		return s.schema
	}
	properties := map[string]any{}
	for _, name := range s.names {
		properties[name] = s.byName[name].openAPI()
	}
	return map[string]any{"type": "object", "default": map[string]any{}, "properties": properties}
}

var identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// identifier is a name as templates can write it: my-app becomes myApp.
func identifier(name string) string {
	if identifierPattern.MatchString(name) {
		return name
	}
	var out strings.Builder
	up := false
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z' && up:
			out.WriteRune(r - 'a' + 'A')
			up = false
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9' && out.Len() > 0:
			out.WriteRune(r)
			up = false
		case r >= '0' && r <= '9':
			out.WriteString("n")
			out.WriteRune(r)
		default:
			up = out.Len() > 0
		}
	}
	if out.Len() == 0 {
		return "value"
	}
	return out.String()
}

// set makes a value of the configuration at the end of a path, and returns the
// expression for it.
func (m *maker) set(description string, schema map[string]any, path ...string) expression {
	schema["description"] = description
	if m.config == nil {
		m.config = &setting{}
	}
	at, s := ".config", m.config
	for _, name := range path {
		s = s.at(&at, name)
	}
	s.schema = schema
	return expression(at)
}

// parametrize replaces fields by expressions.
func (m *maker) parametrize(all []*object) {
	if m.wants(Namespaces) {
		m.namespaces(all)
	}
	for _, o := range all {
		m.workload(o)
	}
}

// plurals are the names of kinds with pods in the configuration.
var plurals = map[string]string{
	"Deployment": "deployments", "StatefulSet": "statefulSets", "DaemonSet": "daemonSets", "ReplicaSet": "replicaSets",
	"ReplicationController": "replicationControllers", "Job": "jobs", "CronJob": "cronJobs", "Pod": "pods",
}

// workload makes parameters of what runs pods.
func (m *maker) workload(o *object) {
	plural, ok := plurals[o.gvk.Kind]
	if !ok {
		return
	}
	spec, _ := o.value["spec"].(map[string]any)
	if replicas, ok := spec["replicas"]; ok && m.wants(Replicas) {
		spec["replicas"] = m.set("How many pods there are.", map[string]any{"type": "integer", "minimum": int64(0), "default": replicas}, plural, o.name(), "replicas")
	}
	pod := podOf(o)
	if pod == nil {
		return
	}
	if m.wants(Tolerations) {
		list, _ := pod["tolerations"].([]any)
		if list == nil {
			list = []any{}
		}
		pod["tolerations"] = m.set("Taints of nodes that the pods tolerate.", map[string]any{
			"type": "array", "default": list,
			"items": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}, plural, o.name(), "tolerations")
	}
	if m.wants(NodeSelectors) {
		selector, _ := pod["nodeSelector"].(map[string]any)
		if selector == nil {
			selector = map[string]any{}
		}
		pod["nodeSelector"] = m.set("Labels of the nodes that the pods may run on.", map[string]any{
			"type": "object", "default": selector, "additionalProperties": map[string]any{"type": "string"},
		}, plural, o.name(), "nodeSelector")
	}
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := pod[field].([]any)
		for _, item := range list {
			if c, ok := item.(map[string]any); ok {
				m.container(c, plural, o.name(), field, text(c, "name"))
			}
		}
	}
}

func podOf(o *object) map[string]any {
	path := []string{"spec", "template", "spec"}
	switch o.gvk.Kind {
	case "Pod":
		path = []string{"spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	pod, _ := dig(o.value, path...).(map[string]any)
	return pod
}

func (m *maker) container(c map[string]any, path ...string) {
	if m.wants(Resources) {
		resources, _ := c["resources"].(map[string]any)
		if resources == nil {
			resources = map[string]any{}
		}
		c["resources"] = m.set("Requests and limits of the container.", map[string]any{
			"type": "object", "default": resources, "x-kubernetes-preserve-unknown-fields": true,
		}, append(slices.Clone(path), "resources")...)
	}
	if m.wants(Env) {
		env, _ := c["env"].([]any)
		for _, item := range env {
			e, _ := item.(map[string]any)
			if value, ok := e["value"].(string); ok {
				e["value"] = m.set("An environment variable of the container.", map[string]any{"type": "string", "default": value}, append(slices.Clone(path), "env", text(e, "name"))...)
			}
		}
	}
	if ref, ok := c["image"].(string); ok && m.wants(Images) {
		c["image"] = m.image(ref)
	}
}

// image is one of spec.images.
type image struct{ name, ref string }

// image returns the expression for an image, which becomes one of spec.images.
// References that cannot be read stay as they are.
func (m *maker) image(ref string) any {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		m.note("the image %q cannot be read and stays as it is", ref)
		return ref
	}
	path := parsed.Context().RepositoryStr()
	base := identifier(path[strings.LastIndex(path, "/")+1:])
	for i, candidate := 2, base; ; i++ {
		at := slices.IndexFunc(m.images, func(have image) bool { return have.name == candidate })
		if at < 0 {
			m.images = append(m.images, image{candidate, ref})
			return expression(".images." + candidate)
		}
		if m.images[at].ref == ref {
			return expression(".images." + candidate)
		}
		candidate = base + strconv.Itoa(i)
	}
}

// namespaces makes parameters of the namespaces, wherever a whole field is one.
func (m *maker) namespaces(all []*object) {
	known := map[string]expression{}
	for _, o := range all {
		for _, ns := range []string{o.namespace(), namespaceName(o)} {
			if ns != "" && known[ns] == "" {
				known[ns] = m.set("The name of the namespace.", map[string]any{
					"type": "string", "default": ns, "minLength": int64(1), "maxLength": int64(63),
					"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
				}, "namespaces", ns)
			}
		}
	}
	for _, o := range all {
		if ns := namespaceName(o); ns != "" {
			child(o.value, "metadata")["name"] = known[ns]
			o.fileName = ns
		}
		m.replaceNamespaces(o.value, known)
	}
	for _, ns := range slices.Sorted(maps.Keys(known)) {
		mentions := 0
		for _, o := range all {
			mentions += mentioned(o.value, ns)
		}
		if mentions > 0 {
			m.note("texts with the namespace %s in them (%d), such as names of hosts, stay as they are", ns, mentions)
		}
	}
}

func namespaceName(o *object) string {
	if o.kind().Kind == "Namespace" && o.kind().Group == "" {
		return o.name()
	}
	return ""
}

// replaceNamespaces replaces all fields called namespace.
func (m *maker) replaceNamespaces(v any, known map[string]expression) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if s, ok := value.(string); ok && key == "namespace" && known[s] != "" {
				v[key] = known[s]
				continue
			}
			m.replaceNamespaces(value, known)
		}
	case []any:
		for _, item := range v {
			m.replaceNamespaces(item, known)
		}
	}
}

// mentioned counts texts that hold a namespace as a word behind a dot or an equals
// sign, as in the name of a host or a flag.
func mentioned(v any, ns string) int {
	n := 0
	switch v := v.(type) {
	case string:
		for _, word := range strings.FieldsFunc(v, func(r rune) bool { return !(r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z') }) {
			if word == ns && (strings.Contains(v, "."+ns) || strings.Contains(v, "="+ns)) {
				return 1
			}
		}
	case map[string]any:
		for _, value := range v {
			n += mentioned(value, ns)
		}
	case []any:
		for _, value := range v {
			n += mentioned(value, ns)
		}
	}
	return n
}
