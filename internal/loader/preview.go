package loader

import (
	"context"

	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
)

// PreviewOptions are options of [Preview].
type PreviewOptions struct {
	Component string
	// TestCase is the test case whose context is used; empty for the first one.
	TestCase string
	// Config replaces the configuration of the test case.
	Config []byte
	// Cluster shows the package as a ClusterPackage.
	Cluster   bool
	Namespace string
	// LockedImages uses the images of the lock instead of StaticImage.
	LockedImages bool
	// ImageOverride and Rewrite have the same meaning as in Options.
	ImageOverride, Rewrite func(string) string
}

// Preview loads a package in one of its test cases. It also returns the Package object that it was
// loaded for.
func Preview(ctx context.Context, files Files, opts PreviewOptions) (*Package, manifestsv1alpha1.TemplateContextPackage, error) {
	load := exampleOptions(opts.Component, false)
	// These are the names that Package Operator's command uses, so that both print the same
	// objects.
	load.Package.Metadata.Name, load.Package.Metadata.Namespace = "name", "namespace"
	u := readUnit(files, opts.Component)
	if u.result != nil {
		tc, err := testCaseOf(&u.result.Manifest.Test, opts.TestCase)
		if err != nil {
			return nil, load.Package, err
		}
		if tc != nil {
			load = load.withTestCase(tc)
			load.anyNamespace = false
		}
		load = load.withScopes(u.result.Manifest.Spec.Scopes)
	}

	if opts.Config != nil {
		load.Config = opts.Config
	}

	switch {
	// A scope from the command line outweighs the test case, including the Package that templates
	// see.
	case opts.Cluster:
		load.Package.Metadata.Namespace, load.seen = "", nil
	case opts.Namespace != "":
		load.Package.Metadata.Namespace, load.anyNamespace, load.seen = opts.Namespace, false, nil
	}

	load.ImageOverride, load.Rewrite = opts.ImageOverride, opts.Rewrite
	load.StaticImages = !opts.LockedImages || u.result == nil || u.result.Lock == nil
	pkg, err := Load(ctx, files, load)
	return pkg, load.Package, err
}
