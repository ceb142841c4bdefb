package config

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// folderPackage has what only the engine's own package has: its manifest, and the Job that rehearses.
const folderPackage = "package"

// packagePhases are the phases of the folders. Of the folder of the manager, its Deployment alone is in the last one.
var packagePhases = []struct{ folder, phase string }{
	{FolderNamespace, "crds"}, {FolderCRDs, "crds"}, {FolderRBAC, "rbac"}, {FolderAdmission, "admission"}, {FolderFlowControl, "admission"},
	{FolderManager, "admission"}, {folderPackage, "rehearse"},
}

// PackageFiles returns the files of the engine's own package, of a version such as v0.2.0, with the
// manager's image by its repository and digest: the objects that the YAML and the chart install, and a
// Job before the Deployment. The package adopts objects that nothing controls, such as those that the YAML has
// installed, and keeps what the engine cannot run without when it is deleted or becomes another one.
func PackageFiles(version, repository, digest string) (map[string][]byte, error) {
	image := repository + ":" + version
	manifest, err := Files.ReadFile(folderPackage + "/manifest.yaml")
	if err != nil {
		return nil, err
	}
	for old, text := range map[string]string{
		"version: 0.0.0-dev": "version: " + strings.TrimPrefix(version, "v"), "image: lockstep.run/lockstep-manager:dev": "image: " + image,
	} {
		if bytes.Count(manifest, []byte(old)) != 1 {
			return nil, fmt.Errorf("config/package/manifest.yaml does not have %q once", old)
		}
		manifest = bytes.Replace(manifest, []byte(old), []byte(text), 1)
	}
	files := map[string][]byte{
		"manifest.yaml": manifest,
		"manifest.lock.yaml": fmt.Appendf(nil, `apiVersion: manifests.package-operator.run/v1alpha1
kind: PackageManifestLock
metadata:
  name: lockstep
spec:
  images:
  - name: manager
    image: %s
    digest: %s
`, image, digest),
	}
	for _, f := range packagePhases {
		all, err := Objects(f.folder)
		if err != nil {
			return nil, err
		}
		for _, object := range all {
			phase := f.phase
			if object.GetKind() == "PackageManifest" {
				continue
			}
			if object.GetKind() == "Deployment" {
				phase = "deploy"
			}
			name, content, err := packageFile(object, phase, version)
			if err != nil {
				return nil, err
			}
			files[name] = content
		}
	}
	return files, nil
}

// runsManager reports whether the manager that runs, or its next pod, needs an object.
func runsManager(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Deployment", "ServiceAccount", "PriorityClass":
		return true
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return object.GetName() == ServiceAccount || object.GetName() == leaderElection
	}
	return false
}

// leaderElection is the name of the Role and RoleBinding for the Lease.
const leaderElection = "lockstep-leader-election"

// packageFile returns an object as a file of the package, a template where it names the image: by its tag, too, as the YAML does.
func packageFile(object *unstructured.Unstructured, phase, version string) (name string, content []byte, err error) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1alpha1.PhaseAnnotation] = phase
	annotations[corev1alpha1.CollisionProtectionAnnotation] = string(corev1alpha1.CollisionProtectionIfNoController)
	if phase == "crds" || runsManager(object) {
		annotations[corev1alpha1.DeletionPolicyAnnotation] = corev1alpha1.DeletionPolicyKeep
	}
	object.SetAnnotations(annotations)
	name = phase + "/" + strings.ToLower(object.GetKind()) + "-" + object.GetName() + ".yaml"
	containers, found, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	if found && err == nil {
		containers[0].(map[string]any)["image"] = fmt.Sprintf(`{{ .images.manager | replace "@" ":%s@" }}`, version)
		err = unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")
		name += ".gotmpl"
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	content, err = yaml.Marshal(object.Object)
	return name, content, err
}
