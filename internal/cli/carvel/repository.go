package carvel

import (
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// repository turns a repository into a PackageRepository, or into a ClusterPackageRepository if it
// is in the global namespace.
func (i *item) repository() {
	from, spec := i.spec(), map[string]any{}
	kind, namespace := "PackageRepository", i.doc.GetNamespace()
	if namespace == i.global {
		kind, namespace = "ClusterPackageRepository", ""
		i.lost("metadata.namespace", "it becomes a ClusterPackageRepository, whose Secrets have to be in the manager's namespace")
	}
	if interval := from.interval(i, "syncPeriod", "30s", func(d metav1.Duration) bool { return d.Duration >= 30*time.Second }); interval != "" {
		spec["interval"] = interval
	}

	if from.bool("paused") {
		spec["paused"] = true
	}
	source := i.source(from.child("fetch"))
	from.rest(i)
	if source == nil {
		i.lost("spec.fetch", "it has no supported source, so this repository was left out")
		return
	}

	spec["source"] = source
	i.emit(coreVersion, kind, i.metadata(namespace, nil), spec)
}

// source takes the first kind that is set, as kapp-controller does.
func (i *item) source(fetch *fields) map[string]any {
	kinds := []struct {
		name, becomes string
		convert       func(*item, *fields) map[string]any
	}{
		{"inline", "inline", (*item).inline}, {"image", "image", (*item).image}, {"http", "http", (*item).http},
		{"git", "git", (*item).git}, {"imgpkgBundle", "image", (*item).image},
	}

	var source map[string]any
	for _, kind := range kinds {
		if !fetch.has(kind.name) {
			continue
		}
		if source != nil {
			i.lost(fetch.at(kind.name), "it had no effect next to the other source")
			continue
		}
		of := fetch.child(kind.name)
		source = map[string]any{kind.becomes: kind.convert(i, of)}
		of.rest(i)
	}

	fetch.rest(i)
	return source
}

// image converts an image or a bundle of imgpkg.
func (i *item) image(from *fields) map[string]any {
	ref := from.text("url")
	if bundle := from.text("image"); bundle != "" {
		ref = bundle
	}
	out := map[string]any{"ref": ref}
	i.subPath(from, out)
	if name := from.child("secretRef").text("name"); name != "" {
		out["imagePullSecrets"] = []any{map[string]any{"name": name}}
	}
	i.tags(from, "tagSelection", out)

	return out
}

// subPath carries over the folder within a source.
func (i *item) subPath(from *fields, out map[string]any) {
	if path := from.text("subPath"); path != "" {
		out["subPath"] = path
	}
}

// secretRef carries over the Secret with the credentials of a source.
func (i *item) secretRef(from *fields, out map[string]any) {
	if name := from.child("secretRef").text("name"); name != "" {
		out["secretRef"] = map[string]any{"name": name}
	}
}

// tags carries over the choice among tags.
func (i *item) tags(from *fields, field string, out map[string]any) {
	if !from.has(field) {
		return
	}
	selection := from.child(field)
	into := map[string]any{}
	i.selection(selection.child("semver"), into)
	selection.rest(i)
	out["tagSelection"] = into
}

// http converts a file on a web server.
func (i *item) http(from *fields) map[string]any {
	out := map[string]any{"url": i.address(from, false)}
	if sum := from.text("sha256"); sum != "" {
		out["sha256"] = strings.ToLower(sum)
	}
	i.subPath(from, out)
	i.secretRef(from, out)
	return out
}

// git converts a git repository.
func (i *item) git(from *fields) map[string]any {
	out := map[string]any{"url": i.address(from, true)}
	if ref := from.text("ref"); ref != "" {
		out["ref"] = ref
	}
	i.subPath(from, out)
	i.secretRef(from, out)
	i.tags(from, "refSelection", out)

	for _, name := range []string{"lfsSkipSmudge", "depth", "forceHTTPBasicAuth"} {
		if from.has(name) {
			i.lost(from.at(name), "it is not needed: files of LFS are not read, and only files that are read are fetched")
		}
	}
	return out
}

// address removes credentials from a URL.
func (i *item) address(from *fields, user bool) string {
	text := from.text("url")
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	_, password := u.User.Password()
	if user && !password && u.Scheme == "ssh" {
		return text
	}
	u.User = nil
	i.lost(from.at("url"), "its credentials were left out: put them into a Secret, and name that in secretRef")

	return u.String()
}

// inline converts files within the object.
func (i *item) inline(from *fields) map[string]any {
	out := map[string]any{}
	if paths, ok := from.get("paths").(map[string]any); ok && len(paths) > 0 {
		out["files"] = paths
	}
	var sources []any
	for _, of := range from.list("pathsFrom") {
		for _, kind := range []string{"secretRef", "configMapRef"} {
			ref := of.child(kind)
			if name := ref.text("name"); name != "" {
				sources = append(sources, map[string]any{kind: map[string]any{"name": name}})
				if ref.has("directoryPath") && ref.text("directoryPath") != "" {
					i.lost(ref.at("directoryPath"), "the keys are paths themselves")
				}
			}
			ref.rest(i)
		}
		of.rest(i)
	}

	if len(sources) > 0 {
		out["filesFrom"] = sources
	}
	return out
}
