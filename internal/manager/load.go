package manager

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"golang.org/x/sync/semaphore"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/version"
)

// newLoad returns how the controller gets from an image to a rendered package.
func newLoad(c *Config, log logr.Logger) (packages.Load, error) {
	puller, err := registry.NewPuller(registry.Options{
		CABundle: c.RegistryCAFile, InsecureRegistries: c.InsecureRegistries, CacheDir: c.CacheDir,
		UserAgent:    "lockstep-manager/" + version.Get(),
		OnCacheError: func(err error) { log.Error(err, "the image cache cannot be used; pulls go on without it") },
	})
	if err != nil {
		return nil, fmt.Errorf("set up pulling: %w", err)
	}
	// Rendering takes memory and processors, and never waits for anyone.
	rendering := semaphore.NewWeighted(limits.UnpacksInFlight)
	return func(ctx context.Context, in packages.Input) (*packages.Content, error) {
		image, err := puller.Pull(ctx, in.Image)
		if err != nil {
			return nil, err
		}
		if err := rendering.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer rendering.Release(1)
		pkg, err := loader.Load(ctx, image.Files, optionsFor(in))
		if err != nil {
			return nil, err
		}
		return contentOf(in, image, pkg), nil
	}, nil
}

// optionsFor says for which installation a package is loaded.
func optionsFor(in packages.Input) loader.Options {
	spec := in.Package.PackageSpec()
	o := loader.Options{
		Package: manifestsv1alpha1.TemplateContextPackage{
			Metadata: manifestsv1alpha1.TemplateContextObjectMeta{
				Name: in.Package.GetName(), Namespace: in.Package.GetNamespace(),
				Labels: in.Package.GetLabels(), Annotations: in.Package.GetAnnotations(),
			},
			Image: spec.Image,
		},
		Component: spec.Component, Environment: &in.Environment,
	}
	if spec.Config != nil {
		o.Config = spec.Config.Raw
	}
	return o
}

func contentOf(in packages.Input, image *registry.Image, pkg *loader.Package) *packages.Content {
	content := &packages.Content{
		Resolved: corev1alpha1.ResolvedPackage{
			PackageName: pkg.Manifest.Name, Version: pkg.Manifest.Spec.Version,
			Image: in.Package.PackageSpec().Image, Digest: image.Digest,
		},
		Labels: pkg.Labels, Template: pkg.Template(),
	}
	for _, warning := range pkg.Warnings {
		content.Warnings = append(content.Warnings, warning.String())
	}
	return content
}
