package kickstart

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"lockstep.run/lockstep/internal/cli/fields"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Folders of a bundle of the Operator Lifecycle Manager in the format registry+v1,
// https://olm.operatorframework.io/docs/tasks/creating-operator-bundle.
const (
	BundleManifests = "manifests"
	BundleMetadata  = "metadata"
)

// Bundle is the content of a bundle.
type Bundle struct {
	// Name of the operator's package.
	Name string
	// Namespace that the operator runs in.
	Namespace string
	Inputs    []Input

	// Notes name the parts without a counterpart.
	Notes []string

	// objects that the ClusterServiceVersion describes.
	objects []any
	// accounts are the ServiceAccounts in objects.
	accounts map[string]bool
}

// csvKind is the kind of the object that describes an operator in a bundle.
const csvKind = "ClusterServiceVersion"

// ReadBundle turns a bundle into objects: its own, and the Deployments, ServiceAccounts and RBAC
// that the Operator Lifecycle Manager would create from its ClusterServiceVersion for all
// namespaces. namespace replaces the suggested one.
func ReadBundle(manifests, metadata loader.Files, namespace string) (*Bundle, error) {
	b := &Bundle{Namespace: namespace, accounts: map[string]bool{"default": true}}
	if err := b.metadata(metadata); err != nil {
		return nil, err
	}

	found := false
	for _, p := range manifests.Paths() {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(p)) {
			continue
		}

		in := Input{Name: BundleManifests + "/" + p, Data: manifests[p]}
		csv, err := csvOf(in)
		if err == nil && csv != nil {
			if found {
				// Two of them would be two operators, each with names and roles of its own.
				return nil, errors.New("the bundle has two objects of the kind " + csvKind + " instead of one")
			}
			found = true
			in.Data, err = b.install(csv)
		}
		if err != nil {
			return nil, err
		}
		b.Inputs = append(b.Inputs, in)
	}

	if !found {
		return nil, errors.New("the image is not a bundle of the Operator Lifecycle Manager: there is no " + csvKind + " in /" + BundleManifests)
	}
	return b, nil
}

// metadata reads the name of the package.
func (b *Bundle) metadata(files loader.Files) error {
	const prefix = "operators.operatorframework.io.bundle."

	var problems violation.Violations
	// The file must exist under one of the two names. A missing one has no documents.
	for _, p := range []string{"annotations.yaml", "annotations.yml"} {
		problems = append(problems, document.Each(BundleMetadata+"/"+p, files[p], func(d *document.Document) {
			b.Name = cmp.Or(b.Name, fields.Text(d.Value, "annotations", prefix+"package.v1"))
			if media := fields.Text(d.Value, "annotations", prefix+"mediatype.v1"); media != "" && media != "registry+v1" {
				problems = append(problems, violation.Violation{
					Reason: violation.ReasonUnsupported, Path: d.Path, Details: fmt.Sprintf("the bundle has the format %q", media), Remedy: "Use a bundle in the format registry+v1.",
				})
			}
		})...)
	}

	if err := problems.Err(); err != nil {
		return err
	}
	if b.Name == "" {
		return errors.New("the image is not a bundle of the Operator Lifecycle Manager: /" + BundleMetadata + "/annotations.yaml names no package")
	}

	return nil
}

// csvOf returns the ClusterServiceVersion in a file; nil if there is none.
func csvOf(in Input) (map[string]any, error) {
	var csv map[string]any
	documents := 0
	problems := document.Each(in.Name, in.Data, func(d *document.Document) {
		documents++
		if fields.Text(d.Value, "kind") == csvKind {
			csv = fields.Map(d.Value)
		}
	})

	if csv != nil && documents > 1 {
		// The file is replaced as a whole by the objects that its ClusterServiceVersion describes.
		return nil, fmt.Errorf("%s has other objects in addition to its %s", in.Name, csvKind)
	}
	return csv, problems.Err()
}

// install returns the objects that a ClusterServiceVersion describes, as a List.
func (b *Bundle) install(csv map[string]any) ([]byte, error) {
	b.Namespace = cmp.Or(b.Namespace, fields.Text(csv, "metadata", "annotations", "operatorframework.io/suggested-namespace"), b.Name)
	spec := fields.Map(csv, "spec", "install", "spec")
	if strategy := fields.Text(csv, "spec", "install", "strategy"); strategy != "deployment" {
		return nil, fmt.Errorf("the %s has the install strategy %q: only deployment can be turned into objects", csvKind, strategy)
	}

	b.rights(fields.List(spec, "clusterPermissions"), "ClusterRole")
	b.rights(fields.List(spec, "permissions"), "Role")
	target := b.target(csv)

	for _, item := range fields.List(spec, "deployments") {
		if err := b.deployment(item, target); err != nil {
			return nil, err
		}
	}

	for field, what := range map[string]string{"webhookdefinitions": "webhooks", "apiservicedefinitions": "API services"} {
		// Webhooks are a list, but API services are below owned.
		definitions := fields.List(csv, "spec", field)
		if owned, ok := fields.Get(csv, "spec", field, "owned").([]any); ok {
			definitions = owned
		}
		if len(definitions) > 0 {
			b.Notes = append(b.Notes, fmt.Sprintf("the bundle has %d %s, whose certificates the Operator Lifecycle Manager creates: they were left out, and the operator might not start without them", len(definitions), what))
		}
	}

	slices.Sort(b.Notes)
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": b.objects})
}

// target is the annotation that names the namespaces for an operator to watch; empty means all.
func (b *Bundle) target(csv map[string]any) string {
	for _, mode := range fields.List(csv, "spec", "installModes") {
		if fields.Bool(mode, "supported") && fields.Text(mode, "type") == "AllNamespaces" {
			return ""
		}
	}
	b.Notes = append(b.Notes, "the operator does not support all namespaces, so it watches only its own")
	return b.Namespace
}

// add adds an object with further fields.
func (b *Bundle) add(apiVersion, kind string, meta, rest map[string]any) {
	rest["apiVersion"], rest["kind"], rest["metadata"] = apiVersion, kind, meta
	b.objects = append(b.objects, rest)
}

// rights adds ServiceAccounts with roles and bindings.
func (b *Bundle) rights(permissions []any, kind string) {
	const group = "rbac.authorization.k8s.io"

	for i, item := range permissions {
		account := cmp.Or(fields.Text(item, "serviceAccountName"), "default")
		b.account(account)
		name := fmt.Sprintf("%s-%s", b.Name, account)
		// Each account can have several entries, so later names are numbered.
		if i > 0 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}

		meta := map[string]any{"name": name}
		if kind == "Role" {
			meta["namespace"] = b.Namespace
		}

		b.add(group+"/v1", kind, meta, map[string]any{"rules": append([]any{}, fields.List(item, "rules")...)})
		b.add(group+"/v1", kind+"Binding", meta, map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": kind, "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": b.Namespace}},
		})
	}
}

// account adds a ServiceAccount once.
func (b *Bundle) account(name string) {
	if !b.accounts[name] {
		b.accounts[name] = true
		b.add("v1", "ServiceAccount", map[string]any{"name": name, "namespace": b.Namespace}, map[string]any{})
	}
}

// deployment adds a Deployment, and its account if the bundle grants it no rights.
func (b *Bundle) deployment(item any, target string) error {
	spec := fields.Map(item, "spec")
	if spec == nil {
		return fmt.Errorf("the deployment %q of the %s has no spec", fields.Text(item, "name"), csvKind)
	}
	if account := fields.Text(spec, "template", "spec", "serviceAccountName"); account != "" {
		b.account(account)
	}

	// OLM sets this annotation on the pods, and operators read it through the downward API.
	child(spec, "template", "metadata", "annotations")["olm.targetNamespaces"] = target
	meta := map[string]any{"name": fields.Text(item, "name"), "namespace": b.Namespace}
	if labels := fields.Map(item, "label"); labels != nil {
		meta["labels"] = labels
	}
	b.add("apps/v1", "Deployment", meta, map[string]any{"spec": spec})
	return nil
}
