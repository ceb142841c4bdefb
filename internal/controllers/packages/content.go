package packages

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// Input is what a package is rendered from.
type Input struct {
	// Package is the object to render for, without its status. It is only read.
	Package corev1alpha1.GenericPackage
	// Image is the reference to pull: that of the spec, or the digest that it
	// stood for when the same spec was unpacked before.
	Image string
	// Namespace is where the Secrets and ConfigMaps are that the spec names: that of
	// the Package or, for a ClusterPackage, of the manager.
	Namespace string
	// Environment is the cluster.
	Environment manifestsv1alpha1.PackageEnvironment
	// Others returns the other installations of a package of that name.
	Others func(packageName string) []types.NamespacedName
	// HashKey hashes what is sensitive; nil where nothing is.
	HashKey []byte
	// Level is the one of turns.Levels that it is rendered at.
	Level int

	turn int
}

// Content is a rendered package.
type Content struct {
	// Resolved says what the image turned out to hold.
	Resolved corev1alpha1.ResolvedPackage
	// SourceImage is the image of the spec after the manager's overrides; empty where
	// there are none.
	SourceImage string
	// Labels are the well-known labels.
	Labels map[string]string
	// Template is what the deployment rolls out, without slices.
	Template corev1alpha1.ObjectSetTemplateSpec
	// Sealing says which objects of the template hold sensitive values; nil where
	// the input has none.
	Sealing *objectslices.Sealing
	// Warnings name what was ignored, such as unknown fields.
	Warnings []string
}

// summary is what the status of a Package needs when the rest was deployed.
func (c *Content) summary() *Content {
	return &Content{Resolved: c.Resolved, Warnings: c.Warnings}
}

// Load pulls and renders. Its error is a *registry.PullError, or
// violation.Violations where the package itself is wrong.
type Load func(ctx context.Context, in Input) (*Content, error)

// Resolve asks a registry which digest the tag in Input.Image stands for.
type Resolve func(ctx context.Context, in Input) (digest string, err error)
