package carvel

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/catalog/versions"
)

// Annotations of PackageInstalls that change the installation.
const (
	downgradable     = "packaging.carvel.dev/downgradable"
	ignoreKubernetes = "packaging.carvel.dev/ignore-kubernetes-version-selection"
	extension        = "ext.packaging.carvel.dev/"
	yttPaths         = extension + "ytt-paths-from-secret-name"
	yttOverlays      = extension + "ytt-data-values-overlays"
	helmValues       = extension + "helm-template-values-from-secret-name"
	fetchPrefix      = extension + "fetch-"
	secretName       = "-secret-name"
)

// coreVersion is the API version of Packages and PackageRepositories.
const coreVersion = "package-operator.run/v1alpha1"

// install turns a PackageInstall into a Package.
func (i *item) install() {
	from, spec := i.spec(), map[string]any{}
	namespace := i.doc.GetNamespace()
	i.reference(from.child("packageRef"), spec)
	i.identity(from, spec)
	handled := i.annotations(spec)
	i.values(from, spec)
	i.dependencies(from.child("dependencies"), spec)
	if from.bool("noopDelete") {
		spec["deletionPolicy"] = "Orphan"
	}

	if interval := from.interval(i, "syncPeriod", "1m", func(d metav1.Duration) bool { return d.Duration >= time.Minute }); interval != "" {
		spec["interval"] = interval
	}
	if to := from.text("defaultNamespace"); to != "" && to != namespace {
		i.missing("spec.defaultNamespace", "the objects of a Package are in its own namespace: install it in %s, or as a ClusterPackage with spec.defaultNamespace", to)
	}

	i.pause(from, spec)
	from.rest(i)
	i.emit(coreVersion, "Package", i.metadata(namespace, handled), spec)
}

// pause carries a pause over, and pauses a Package that would be installed differently.
func (i *item) pause(from *fields, spec map[string]any) {
	for _, name := range []string{"paused", "canceled"} {
		if from.bool(name) {
			spec["paused"] = true
		}
	}
	if i.different && spec["paused"] == nil {
		spec["paused"] = true
		i.lost("", "spec.paused is set, because the installed objects would lack something: add it, then run kubectl package unpause %s", i.doc.GetName())
	}
}

// reference carries over the package and its versions.
func (i *item) reference(from *fields, spec map[string]any) {
	ref := map[string]any{"name": from.text("refName")}
	i.selection(from.child("versionSelection"), ref)
	from.rest(i)
	spec["packageRef"] = ref
}

// selection fills version and prereleases of a packageRef or a tagSelection.
func (i *item) selection(from *fields, into map[string]any) {
	if constraints := from.text("constraints"); constraints != "" {
		into["version"] = constraints
		if _, err := versions.ParseConstraint(constraints); err != nil {
			i.missing(from.at("constraints"), "it cannot be read: %v", err)
		}
	}

	if from.has("prereleases") {
		prereleases := map[string]any{}
		inner := from.child("prereleases")
		if identifiers, ok := inner.get("identifiers").([]any); ok && len(identifiers) > 0 {
			prereleases["identifiers"] = identifiers
		}
		inner.rest(i)
		into["prereleases"] = prereleases
	}

	from.rest(i)
}

// identity carries over the account that writes the objects, or the cluster that they are written
// to.
func (i *item) identity(from *fields, spec map[string]any) {
	account := from.text("serviceAccountName")
	if account != "" {
		spec["serviceAccountName"] = account
	}
	cluster := from.child("cluster")
	switch {
	case len(cluster.values) == 0:
	case account != "":
		i.lost("spec.cluster", "it had no effect next to spec.serviceAccountName")
	default:
		i.target(cluster, spec)
	}
}

// target turns a cluster into a targetRef.
func (i *item) target(from *fields, spec map[string]any) {
	secret := from.child("kubeconfigSecretRef")
	ref := map[string]any{"name": secret.text("name")}
	if key := secret.text("key"); key != "" {
		ref["key"] = key
	}
	target := map[string]any{"kubeconfigSecretRef": ref}
	if namespace := from.text("namespace"); namespace != "" {
		target["namespace"] = namespace
	}

	secret.rest(i)
	from.rest(i)
	spec["targetRef"] = target
}

// annotations carries over the annotations that change the installed objects, and returns them.
func (i *item) annotations(spec map[string]any) map[string]bool {
	all, handled := i.doc.GetAnnotations(), map[string]bool{}
	pull := []any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		field := "annotation " + name
		switch {
		case name == downgradable:
			spec["downgradePolicy"] = "Allow"
		case name == yttPaths, strings.HasPrefix(name, yttPaths+"."):
			i.missing(field, "overlays of ytt are not run: write their changes as spec.patches")
		case name == yttOverlays:
			i.missing(field, "values that are overlays of ytt are not run: write them as plain values")
		case name == helmValues, strings.HasPrefix(name, helmValues+"."):
			// see values
		case strings.HasPrefix(name, extension+"helm-template-"):
			i.missing(field, "a package is not a release of Helm: its objects have the names that the package gives them")
		case strings.HasPrefix(name, fetchPrefix) && strings.HasSuffix(name, secretName):
			pull = append(pull, map[string]any{"name": all[name]})
		default:
			continue
		}

		handled[name] = true
	}

	if len(pull) > 0 {
		spec["imagePullSecrets"] = pull
	}
	return handled
}

// values adds an entry to configFrom for each key of each Secret: Secrets in their order, keys in
// alphabetical order.
func (i *item) values(from *fields, spec map[string]any) {
	sources := []any{}
	all := i.doc.GetAnnotations()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == helmValues || strings.HasPrefix(name, helmValues+".") {
			sources = append(sources, i.secret("annotation "+name, "spec.configFrom", all[name])...)
		}
	}

	for _, value := range from.list("values") {
		sources = append(sources, i.secretOf(value, "spec.configFrom")...)
		value.rest(i)
	}

	if len(sources) > 0 {
		spec["configFrom"] = sources
	}
}

// dependencies carries over who installs them, and the versions and values that replace the
// author's.
func (i *item) dependencies(from *fields, spec map[string]any) {
	if len(from.values) == 0 {
		return
	}
	out, byName, overrides := map[string]any{}, map[string]map[string]any{}, []any{}
	override := func(entry *fields, field string, value any) {
		name := entry.text("name")
		if byName[name] == nil {
			byName[name] = map[string]any{"name": name}
			overrides = append(overrides, byName[name])
		}
		byName[name][field] = value
		entry.rest(i)
	}

	if management := from.text("managedBy"); management != "" {
		out["management"] = management
	}

	for _, entry := range from.list("override") {
		ref, pkg := entry.child("packageRef"), map[string]any{}
		if name := ref.text("refName"); name != "" {
			pkg["name"] = name
		}
		i.selection(ref.child("versionSelection"), pkg)
		ref.rest(i)
		override(entry, "package", pkg)
	}

	for _, entry := range from.list("values") {
		if sources := i.secretOf(entry, "configFrom in spec.dependencies.overrides"); len(sources) > 0 {
			override(entry, "configFrom", sources)
		}
	}

	if len(overrides) > 0 {
		out["overrides"] = overrides
	}
	from.rest(i)
	spec["dependencies"] = out
}

// secretOf returns sources for the Secret that an entry of values names.
func (i *item) secretOf(entry *fields, into string) []any {
	ref := entry.child("secretRef")
	name := ref.text("name")
	if name == "" {
		i.missing(entry.path, "it names no Secret")
		return nil
	}
	ref.has("key") // it had no effect: all keys of the Secret count
	ref.rest(i)

	return i.secret(entry.path, into, name)
}

// secret returns a source for each key of a Secret. The keys have to be in the input, because
// configFrom names each of them.
func (i *item) secret(field, into, name string) (sources []any) {
	keys, known := i.secrets[key(i.doc.GetNamespace(), name)]
	if !known {
		keys, known = i.secrets[key("", name)]
	}

	if !known {
		i.missing(field, "Secret %s is not in the input, so its keys are not known: add it to the input, or add an entry to %s for each of its keys", name, into)
		return nil
	}

	for _, k := range keys {
		// A value of kapp-controller could be rendered into any object.
		sources = append(sources, map[string]any{"secretKeyRef": map[string]any{"name": name, "key": k, "sensitive": false}})
	}

	return sources
}
