package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cluster/sources"
	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/objects/objectslices"
	"lockstep.run/lockstep/internal/version"
)

// packageLoader gets from an image to a rendered package.
type packageLoader struct {
	puller      *registry.Puller
	prefixes    registry.Overrides
	get         sources.Get
	credentials *sources.Credentials
	// namespaced reports whether a kind is namespaced, as the cluster knows it.
	namespaced func(schema.GroupKind) (namespaced, known bool)
	// rendering bounds memory and CPU.
	rendering queueing.Levels
}

func newLoader(c *Config, log logr.Logger, get sources.Get, credentials *sources.Credentials) (*packageLoader, error) {
	puller, err := registry.NewPuller(registry.Options{
		CABundle: c.RegistryCAFile, InsecureRegistries: c.InsecureRegistries, CacheDir: c.CacheDir,
		ImagePrefixes: c.ImagePrefixes, RegistryHosts: c.RegistryHosts,
		UserAgent:    "lockstep-manager/" + version.Get(),
		OnCacheError: func(err error) { log.Error(err, "the image cache cannot be used; pulls go on without it") },
	})
	if err != nil {
		return nil, fmt.Errorf("set up pulling: %w", err)
	}
	return &packageLoader{
		puller: puller, prefixes: c.ImagePrefixes, get: get, credentials: credentials,
		rendering: queueing.NewLevels(limits.LoadsShort, limits.LoadShort, limits.LoadMedium),
	}, nil
}

// load is the packages.Load of the manager.
func (l *packageLoader) load(ctx context.Context, in packages.Input) (*packages.Content, error) {
	var image *registry.Image
	err := l.access(ctx, in, func(p *registry.Puller) (err error) {
		image, err = p.Pull(ctx, in.Image)
		return err
	})
	if err != nil {
		return nil, err
	}
	// What they hold is known to this one rendering, and forgotten after it.
	values, err := sources.Read(ctx, l.get, in.Package.PackageSpec(), in.Namespace)
	if err != nil {
		return nil, err
	}
	var pkg *loader.Package
	err = l.rendering.Do(ctx, in.Level, func(ctx context.Context) (err error) {
		pkg, err = loader.Load(ctx, image.Files, l.optionsFor(in, values))
		return err
	})
	if err != nil {
		return nil, err
	}
	content := contentOf(in, image, pkg)
	content.SourceImage = l.prefixes.Apply(content.Resolved.Image)
	return content, nil
}

// resolve is the packages.Resolve of the manager.
func (l *packageLoader) resolve(ctx context.Context, in packages.Input) (digest string, err error) {
	err = l.access(ctx, in, func(p *registry.Puller) (err error) {
		digest, err = p.Resolve(ctx, in.Image)
		return err
	})
	return digest, err
}

// access pulls as the Package says. An error names pull secrets that could not be
// used: without them the registry refuses what it would allow.
func (l *packageLoader) access(ctx context.Context, in packages.Input, pull func(*registry.Puller) error) error {
	spec := in.Package.PackageSpec()
	if spec.ImagePullPolicy == corev1alpha1.ImagePullPolicyNever {
		return pull(l.puller.With(registry.Access{Offline: true}))
	}
	keys, unusable, err := l.credentials.Keychain(ctx, sources.PullSecrets(spec, in.Namespace))
	if err != nil {
		return err
	}
	err = pull(l.puller.With(registry.Access{Keychain: keys}))
	var failed *registry.PullError
	if len(unusable) == 0 || !errors.As(err, &failed) {
		return err
	}
	told := *failed
	told.Details += " (" + strings.Join(unusable, "; ") + ")"
	return &told
}

// optionsFor says for which installation a package is loaded.
func (l *packageLoader) optionsFor(in packages.Input, values *sources.Values) loader.Options {
	o := sources.Options(in.Package, values)
	o.Environment, o.Namespaced, o.ImageOverride = &in.Environment, l.namespaced, l.prefixes.Apply
	o.Others = func(name string) []loader.Other {
		others := []loader.Other{}
		for _, key := range in.Others(name) {
			others = append(others, loader.Other{Namespace: key.Namespace, Name: key.Name})
		}
		return others
	}
	return o
}

func contentOf(in packages.Input, image *registry.Image, pkg *loader.Package) *packages.Content {
	content := &packages.Content{
		Resolved: corev1alpha1.ResolvedPackage{
			PackageName: pkg.Name, Version: pkg.Manifest.Spec.Version,
			Image: in.Package.PackageSpec().Image, Digest: image.Digest,
		},
		Labels: pkg.Labels, Template: pkg.Template(),
	}
	if pkg.Sensitive != nil {
		content.Sealing = &objectslices.Sealing{Key: in.HashKey, Holds: pkg.HoldsSensitive}
	}
	for _, warning := range pkg.Warnings {
		content.Warnings = append(content.Warnings, warning.String())
	}
	return content
}
