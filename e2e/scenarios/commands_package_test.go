package scenarios_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/internal/loader"
)

// packageCommands install, change and delete packages in the script's namespace.
var packageCommands = commands{
	// package create NAME VERSION: makes an image of the files below VERSION/, and a Package
	// of it.
	// package upgrade NAME VERSION: the same, and the Package's image is changed.
	// package delete NAME [--propagation=Background|Foreground|Orphan]
	// package patch NAME JSON: a merge patch of the Package.
	"package": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) >= 2, "package create|upgrade|delete|patch NAME …")
		name, rest := args[1], args[2:]
		switch args[0] {
		case "create", "upgrade":
			s.usage(len(rest) == 1, "package "+args[0]+" NAME VERSION")
			image := s.push(name, rest[0])
			s.note(name, rest[0])
			if args[0] == "create" {
				s.cluster().Create(s, harness.Package(s.namespace, name, image))
			} else {
				s.cluster().SetImage(s, s.namespace, name, image)
			}
		case "delete":
			s.note(name, "")
			s.remove(name, rest)
		case "patch":
			s.usage(len(rest) == 1, "package patch NAME JSON")
			s.check(s.cluster().Client.Patch(s.Context(), harness.Package(s.namespace, name, ""), client.RawPatch(types.MergePatchType, []byte(rest[0]))))
		default:
			s.Fatalf("unknown action %q", args[0])
		}
	},
}

// release is one version of a package.
type release struct {
	// objects in the order of their phases.
	objects []object
}

// object is one object of a release.
type object struct {
	phase    int
	template *unstructured.Unstructured
	// gated means that the probes of the release look at it: label gated=true.
	gated bool
}

func (o object) id() string {
	return strings.ToLower(o.template.GetKind()) + "/" + o.template.GetName()
}

// step is something that the script asked of a package.
type step struct {
	at time.Time
	// name of the package, and its new version; empty if it is deleted.
	name, version string
	// ended means that a check found it complete.
	ended bool
	// restored means that its state came back with a snapshot.
	restored bool
}

// note records a step just before it is requested.
func (s *scenario) note(name, version string) {
	s.steps = append(s.steps, step{at: time.Now(), name: name, version: version})
}

// push pushes the version's image, and notes its content.
func (s *scenario) push(name, version string) string {
	files := s.files(version)
	image := s.cluster().Push(s, s.namespace+"-"+name+":"+version, files)
	pkg, err := loader.Load(s.Context(), files.Bytes(), loader.Options{
		Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{Name: name, Namespace: s.namespace}, Image: image,
		},
	})
	if err != nil {
		return image // the script is about a package that is not valid
	}
	r := &release{}
	for i, phase := range pkg.Phases {
		for _, o := range phase.Objects {
			template := &unstructured.Unstructured{}
			s.check(json.Unmarshal(o.Object.Raw, &template.Object))
			r.objects = append(r.objects, object{phase: i, template: template, gated: template.GetLabels()["gated"] == "true"})
		}
	}
	s.releases[name+" "+version] = r
	return image
}

// files reads the files of the script below a folder.
func (s *scenario) files(dir string) harness.Files {
	root, files := s.ts.MkAbs(dir), harness.Files{}
	s.check(filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(content)
		return err
	}))
	return files
}

func (s *scenario) remove(name string, flags []string) {
	var opts []client.DeleteOption
	for _, flag := range flags {
		policy, ok := strings.CutPrefix(flag, "--propagation=")
		s.usage(ok, "package delete NAME [--propagation=POLICY]")
		opts = append(opts, client.PropagationPolicy(metav1.DeletionPropagation(policy)))
	}
	s.check(s.cluster().Client.Delete(s.Context(), harness.Package(s.namespace, name, ""), opts...))
}

// desired returns the version of each package by the last steps, and all packages so far; a deleted
// one has no version.
func (s *scenario) desired() map[string]string {
	versions := map[string]string{}
	for _, step := range s.steps {
		versions[step.name] = step.version
	}
	return versions
}

// contents are the objects of a version, none without a version.
func (s *scenario) contents(name, version string) []object {
	if r := s.releases[name+" "+version]; r != nil {
		return r.objects
	}
	return nil
}
