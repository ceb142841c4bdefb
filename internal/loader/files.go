package loader

import (
	"encoding/json"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"lockstep.run/lockstep/internal/loader/archive"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/render"
)

// Files are the files of a package: content by path below /package.
type Files = archive.Files

// ReadFolder reads a package from a folder.
func ReadFolder(dir string) (Files, error) { return archive.ReadFolder(dir) }

// RepositoryOf returns a reference without tag and digest.
func RepositoryOf(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndexByte(ref, ':'); colon > strings.LastIndexByte(ref, '/') {
		ref = ref[:colon]
	}
	return ref
}

// isObjectFile reports whether a file has objects: YAML other than the manifest, the lock and
// helpers of templates.
func isObjectFile(p string) bool {
	ext := path.Ext(p)
	return (ext == ".yaml" || ext == ".yml") && !render.IsHelper(p) && !manifest.IsManifest(p)
}

// Unread returns JSON files that look like objects. Only files with a YAML extension are read.
func Unread(files Files) (paths []string) {
	for _, p := range files.Paths() {
		var object metav1.TypeMeta
		if path.Ext(p) == ".json" && json.Unmarshal(files[p], &object) == nil && object.APIVersion != "" && object.Kind != "" {
			paths = append(paths, p)
		}
	}
	return paths
}
