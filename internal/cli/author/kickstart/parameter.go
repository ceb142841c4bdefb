package kickstart

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/go-containerregistry/pkg/name"

	"lockstep.run/lockstep/internal/cli/fields"
)

// Parameter names fields that become configuration.
type Parameter string

// The fields that can become configuration.
const (
	Namespaces    Parameter = "namespaces"
	Replicas      Parameter = "replicas"
	Tolerations   Parameter = "tolerations"
	NodeSelectors Parameter = "nodeselectors"
	Resources     Parameter = "resources"
	Env           Parameter = "env"
	Images        Parameter = "images"
)

// Parameters lists all of them.
var Parameters = []Parameter{Namespaces, Replicas, Tolerations, NodeSelectors, Resources, Env, Images}

// ParseParameters reads a list of names. The name all means every parameter.
func ParseParameters(names []string) (out []Parameter, err error) {
	for _, n := range names {
		p := Parameter(strings.ToLower(n))
		if p == "all" {
			return slices.Clone(Parameters), nil
		}
		if !slices.Contains(Parameters, p) {
			return nil, fmt.Errorf("%q cannot become a parameter: choose from namespaces, replicas, tolerations, nodeselectors, resources, env, images, all", n)
		}
		out = append(out, p)
	}
	return out, nil
}

// wants reports whether the option for a parameter is set.
func (m *maker) wants(p Parameter) bool { return slices.Contains(m.opts.Parameters, p) }

// configuration is the schema of the package's configuration.
type configuration struct {
	schema map[string]any
	// keys are the identifiers of names, by the path of their parent and the name.
	keys map[[2]string]string
}

// set adds a value, and returns the expression for it. Each object has a default, so that the
// defaults inside it apply.
func (c *configuration) set(description string, schema map[string]any, names ...string) expression {
	if c.schema == nil {
		c.schema, c.keys = map[string]any{"type": "object"}, map[[2]string]string{}
	}
	parent, at := c.schema, ".config"
	for i, name := range names {
		properties := child(parent, "properties")
		key := c.key(at, name, properties)
		at += "." + key
		if i == len(names)-1 {
			schema["description"] = description
			properties[key] = schema
			break
		}

		if properties[key] == nil {
			properties[key] = map[string]any{"type": "object", "default": map[string]any{}}
		}
		parent = child(properties, key)
	}

	return expression(at)
}

// key returns the identifier of a name below a path, unique among the properties.
func (c *configuration) key(at, name string, properties map[string]any) string {
	key, known := c.keys[[2]string{at, name}]
	if known {
		return key
	}
	key = identifier(name)
	for i := 2; properties[key] != nil; i++ {
		key = identifier(name) + strconv.Itoa(i)
	}

	c.keys[[2]string{at, name}] = key
	return key
}

// identifierPattern matches the names that a template can use after a dot. separators match the
// characters to remove from other names, with the letter to capitalize.
var (
	identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	separators        = regexp.MustCompile(`[^A-Za-z0-9]+[a-z]?`)
)

// identifier turns a name into one that templates can write: my-app becomes myApp.
func identifier(name string) string {
	if identifierPattern.MatchString(name) {
		return name
	}
	name = strings.TrimLeftFunc(name, func(r rune) bool { return separators.MatchString(string(r)) })
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "n" + name
	}
	return cmp.Or(separators.ReplaceAllStringFunc(name, func(s string) string {
		return strings.ToUpper(strings.TrimLeftFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }))
	}), "value")
}

// plurals are the names that kinds with pods have in the configuration.
var plurals = map[string]string{
	"Deployment": "deployments", "StatefulSet": "statefulSets", "DaemonSet": "daemonSets", "ReplicaSet": "replicaSets",
	"ReplicationController": "replicationControllers", "Job": "jobs", "CronJob": "cronJobs", "Pod": "pods",
}

// workload turns fields of an object with pods into parameters.
func (m *maker) workload(o *object) {
	plural := plurals[o.gvk.Kind]
	if plural == "" {
		return
	}
	spec := fields.Map(o.value, "spec")
	if replicas, ok := spec["replicas"]; ok && m.wants(Replicas) {
		spec["replicas"] = m.config.set("Number of pods.", map[string]any{"type": "integer", "minimum": int64(0), "default": replicas}, plural, o.name(), "replicas")
	}

	pod, _ := fields.PodSpec(o.value)
	if pod == nil {
		return
	}
	if m.wants(Tolerations) {
		list := fields.List(pod, "tolerations")
		if list == nil {
			list = []any{}
		}
		pod["tolerations"] = m.config.set("Taints of nodes that the pods tolerate.", map[string]any{
			"type": "array", "default": list,
			"items": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}, plural, o.name(), "tolerations")
	}

	if m.wants(NodeSelectors) {
		pod["nodeSelector"] = m.config.set("Labels of the nodes that the pods can run on.", map[string]any{
			"type": "object", "default": child(pod, "nodeSelector"), "additionalProperties": map[string]any{"type": "string"},
		}, plural, o.name(), "nodeSelector")
	}

	fields.Containers(o.value, func(_, list string, c map[string]any) { m.container(c, plural, o.name(), list, fields.Text(c, "name")) })
}

// container turns fields of a container into parameters. names lead to its place in the
// configuration.
func (m *maker) container(c map[string]any, names ...string) {
	if m.wants(Resources) {
		c["resources"] = m.config.set("Requests and limits of the container.", map[string]any{
			"type": "object", "default": child(c, "resources"), "x-kubernetes-preserve-unknown-fields": true,
		}, slices.Concat(names, []string{"resources"})...)
	}

	if m.wants(Env) {
		// A variable with valueFrom has no value to configure.
		for _, e := range fields.Maps(c, "env") {
			if value, ok := e["value"].(string); ok {
				e["value"] = m.config.set("An environment variable of the container.", map[string]any{"type": "string", "default": value},
					slices.Concat(names, []string{"env", fields.Text(e, "name")})...)
			}
		}
	}

	if ref, ok := c["image"].(string); ok && m.wants(Images) {
		c["image"] = m.image(ref)
	}
}

// image returns the expression for an image, which becomes one of spec.images. Unreadable
// references stay as they are.
func (m *maker) image(ref string) any {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		m.note("the image %q cannot be read and stays as it is", ref)
		return ref
	}
	base := identifier(path.Base(parsed.Context().RepositoryStr()))
	for i, candidate := 2, base; ; i++ {
		at := slices.IndexFunc(m.images, func(have any) bool { return fields.Text(have, "name") == candidate })
		if at < 0 {
			m.images = append(m.images, map[string]any{"name": candidate, "image": ref})
		}
		if at < 0 || fields.Text(m.images[at], "image") == ref {
			return expression(".images." + candidate)
		}
		candidate = base + strconv.Itoa(i)
	}
}

// namespaces turns the namespaces into parameters, wherever a namespace is a whole field.
func (m *maker) namespaces(all []*object) {
	known := map[string]expression{}
	for _, o := range all {
		for _, ns := range []string{o.namespace(), namespaceName(o)} {
			if ns != "" && known[ns] == "" {
				known[ns] = m.config.set("The name of the namespace.", map[string]any{
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
		fields.Walk(o.value, func(parent map[string]any, key string, value any) {
			s, _ := value.(string)
			if parent != nil && key == "namespace" && known[s] != "" {
				parent[key] = known[s]
			}
		})
	}
}

// namespaceName returns the name of a Namespace; empty for another object.
func namespaceName(o *object) string {
	if o.is("", "Namespace") {
		return o.name()
	}
	return ""
}

// secrets turns the values of Secrets into configuration. Their defaults, the values of the input,
// are readable in the image.
func (m *maker) secrets(all []*object) {
	n := 0
	for _, o := range all {
		if !o.is("", "Secret") {
			continue
		}
		// Both fields hold values. The API server merges stringData into data.
		for _, field := range []string{"data", "stringData"} {
			values := fields.Map(o.value, field)
			for _, key := range fields.Keys(values) {
				if value := fields.Text(values, key); value != "" {
					values[key] = m.secretValue(o, field, key, value)
					n++
				}
			}
		}
	}

	if n > 0 {
		m.note("values of Secrets (%d) became configuration below secrets. Everybody who can pull the image can read these defaults: set other values with spec.configFrom, or leave the Secrets out", n)
	}
}

// secretValue returns the expression for one value. Text is decoded in the configuration.
func (m *maker) secretValue(o *object, field, key, value string) expression {
	encode := expression("")
	if field == "data" {
		// A value that is not text stays in base64, because a configuration is JSON.
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil && utf8.Valid(plain) {
			value, encode = string(plain), " | b64enc"
		}
	}
	return m.config.set("The value of "+key+" in the Secret "+o.name()+".", map[string]any{"type": "string", "default": value}, "secrets", o.name(), key) + encode
}
