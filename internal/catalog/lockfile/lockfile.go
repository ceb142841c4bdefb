package lockfile

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/repository"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/manifest"
	"lockstep.run/lockstep/internal/loader/violation"
)

// Options define how references are looked up.
type Options struct {
	Resolve    func(ctx context.Context, ref string) (string, error)
	Repository func(ctx context.Context, source manifestsv1alpha1.PackageManifestRepository) (*repository.Index, error)
}

// File is the lock of one part of a package.
type File struct {
	// Path is the path of the file below the package's folder.
	Path string
	Data []byte
	// Changed is set if the file has to be written.
	Changed bool
}

// Compute returns the locks of a package and its components. Its error can be violation.Violations.
func Compute(ctx context.Context, files loader.Files, opts Options) ([]File, error) {
	var out []File
	digests := map[string]string{}
	for _, part := range loader.Parts(files) {
		u := unit{part: part, opts: opts, digests: digests}
		file, err := u.compute(ctx)
		var wrong violation.Violations
		switch {
		case err != nil && part.Component != "" && !errors.As(err, &wrong):
			return nil, fmt.Errorf("component %s: %w", part.Component, err)
		case err != nil:
			return nil, err
		}
		if file != nil {
			out = append(out, *file)
		}
	}

	return out, nil
}

// unit is one part of a package. All parts share digests.
type unit struct {
	part    loader.Part
	opts    Options
	digests map[string]string
}

// compute returns the lock of one part; nil if it needs none. A lock that is not needed any more is
// emptied and not deleted.
func (u *unit) compute(ctx context.Context) (*File, error) {
	spec, old, err := u.read()
	if err != nil {
		return nil, err
	}

	file := &File{Path: path.Join(u.part.Folder, lockPath(u.part.Files))}
	_, exists := u.part.Files[lockPath(u.part.Files)]
	if len(spec.Images) == 0 && len(spec.Dependencies) == 0 {
		if !exists {
			return nil, nil
		}
		if old != nil && equality.Semantic.DeepEqual(*old, manifestsv1alpha1.PackageManifestLockSpec{}) {
			return file, nil
		}
	}

	lock := manifestsv1alpha1.PackageManifestLockSpec{}
	if lock.Images, err = u.images(ctx, spec.Images); err != nil {
		return nil, err
	}
	if lock.Dependencies, err = u.dependencies(ctx, spec); err != nil {
		return nil, err
	}
	if file.Data, err = marshal(lock); err != nil {
		return nil, err
	}

	file.Changed = !exists || old == nil || !equality.Semantic.DeepEqual(*old, lock)
	return file, nil
}

// read returns the spec of the manifest and of its lock, or nil if there is no lock. It ignores
// problems of the lock, which are about to be corrected.
func (u *unit) read() (*manifestsv1alpha1.PackageManifestSpec, *manifestsv1alpha1.PackageManifestLockSpec, error) {
	result, problems := manifest.Read(u.part.Files, u.part.Component)
	var wrong violation.Violations
	for _, p := range problems {
		if p.Path != lockName && p.Path != lockNameYML && !slices.Contains(ofLock, p.Reason) {
			p.Component = u.part.Component
			wrong = append(wrong, p)
		}
	}

	if err := wrong.Err(); err != nil {
		return nil, nil, err
	}
	if result.Lock == nil {
		return &result.Manifest.Spec, nil, nil
	}
	return &result.Manifest.Spec, &result.Lock.Spec, nil
}

// ofLock are the reasons of problems with a lock that its file does not have.
var ofLock = []violation.Reason{violation.ReasonLockMissing, violation.ReasonLockImageMissing, violation.ReasonLockImageDifferent}

// Both extensions are read, and an existing file keeps its own.
const (
	lockName    = "manifest.lock.yaml"
	lockNameYML = "manifest.lock.yml"
)

// lockPath returns the path of the lock to write.
func lockPath(files loader.Files) string {
	if _, ok := files[lockNameYML]; ok {
		return lockNameYML
	}
	return lockName
}

// images resolves each reference once for all parts, so that all parts pin the same digest.
func (u *unit) images(ctx context.Context, images []manifestsv1alpha1.PackageManifestImage) ([]manifestsv1alpha1.PackageManifestLockImage, error) {
	var out []manifestsv1alpha1.PackageManifestLockImage
	var failed []error
	for _, img := range images {
		digest, ok := u.digests[img.Image]
		if !ok {
			var err error
			if digest, err = u.opts.Resolve(ctx, img.Image); err != nil {
				failed = append(failed, fmt.Errorf("resolving image digest: image %q: %w", img.Name, err))
				continue
			}
			u.digests[img.Image] = digest
		}
		out = append(out, manifestsv1alpha1.PackageManifestLockImage{Name: img.Name, Image: img.Image, Digest: digest})
	}

	return out, errors.Join(failed...)
}

// marshal writes a lock with its keys in alphabetical order.
func marshal(spec manifestsv1alpha1.PackageManifestLockSpec) ([]byte, error) {
	data, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Spec            manifestsv1alpha1.PackageManifestLockSpec `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: manifestsv1alpha1.GroupVersion.String(), Kind: manifestsv1alpha1.KindPackageManifestLock}, spec,
	})
	if err != nil {
		return nil, fmt.Errorf("write the lock: %w", err)
	}
	return data, nil
}
