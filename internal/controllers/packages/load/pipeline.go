package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	manifestsv1alpha1 "lockstep.run/lockstep/apis/manifests/v1alpha1"
	"lockstep.run/lockstep/internal/controllers/packages/choice"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/objectslices"
)

// Pipeline turns an image into a rendered package: pull, read values, render.
type Pipeline struct {
	Puller   *registry.Puller
	Prefixes registry.Overrides
	// Namespace of the manager has the pull secrets of ImageConfigs.
	Namespace   string
	Get         sources.Get
	Credentials *sources.Credentials
	// Guard decides which Secrets are read for which accounts.
	Guard *sources.Guard
	// ClusterPullSecrets means that the manager's credentials and cache are for ClusterPackages
	// alone.
	ClusterPullSecrets bool
	// Namespaced reports whether a kind is namespaced, as far as the cluster is known.
	Namespaced func(schema.GroupKind) (namespaced, known bool)

	// Memory is acquired by large packages while they are loaded, and bounds each.
	Memory *quota.Memory
	// Pulled is called after each pull of an image if it is not nil.
	Pulled func(took time.Duration, err error)

	// rendering bounds how many are rendered at a time, and the memory of small packages.
	rendering *queueing.Stages
}

// Request is the input of one load.
type Request struct {
	Pkg corev1alpha1.GenericPackage
	// Image is the reference to pull: of the spec, or by the digest that was unpacked before.
	Image string
	// Origin is the content chosen to load.
	Origin        choice.Origin
	Namespace     string
	Environment   manifestsv1alpha1.PackageEnvironment
	Manager       string // as Options.Version
	installations func(packageName string) []types.NamespacedName
	// HashKey hashes sensitive values; nil if there are none.
	HashKey []byte
	// Namespaced reports the scope of kinds in another cluster, or is nil.
	Namespaced func(schema.GroupKind) (namespaced, known bool)
	// Long means that it takes longer than short work can.
	Long bool
	// Size is the number of times that it was larger than the available room.
	Size int
	// Policies are the policies of the decision to load it.
	Policies *imagepolicy.Set
	// Reader has to have the right to get the Secrets that the Package names.
	Reader objects.Account
}

// isLarge reports whether a load is not short, or acquires memory: the status then records it while
// it is in progress.
func (in *Request) isLarge() bool { return in.Long || in.Size > 0 }

// Content is a rendered package.
type Content struct {
	Resolved corev1alpha1.ResolvedPackage
	// Mirror is the reference that was pulled in place of the image, and the ImageConfig that names
	// it; empty for none.
	Mirror string
	Labels map[string]string
	// Template is the template of the deployment, without slices.
	Template corev1alpha1.ObjectSetTemplateSpec
	// Sealing selects the objects with sensitive values; nil if the input has none.
	Sealing *objectslices.Sealing
	// Warnings name ignored content, such as unknown fields.
	Warnings []string
	// Dependencies are the manifest's.
	Dependencies []corev1alpha1.Dependency
	// Verification is the outcome for the image; nil if no signature is needed.
	Verification *imagepolicy.Outcome
	// Rules are the rights that the package requires.
	Rules []rbacv1.PolicyRule
}

// summary is the part that the status of a Package needs once the content was deployed.
func (c *Content) summary() *Content {
	return &Content{Resolved: c.Resolved, Mirror: c.Mirror, Warnings: c.Warnings, Dependencies: c.Dependencies, Verification: c.Verification, Rules: c.Rules}
}

// atRest returns how much memory the objects take once they are rolled out.
func (c *Content) atRest() int64 {
	if c == nil {
		return 0
	}
	var size int64
	for _, phase := range c.Template.Phases {
		for i := range phase.Objects {
			size += quota.AtRest(phase.Objects[i].Object.Raw)
		}
	}
	return size
}

// Resolve requests the digest of a tag from the registry.
func (p *Pipeline) Resolve(ctx context.Context, in Request) (digest string, err error) {
	decision := in.decision()
	err = p.access(ctx, in, decision, registry.Access{}, func(puller *registry.Puller) (err error) {
		digest, err = puller.Resolve(ctx, decision.Pull)
		return err
	})
	return digest, err
}

// access pulls with the credentials of the Package and the manager. An error names pull secrets
// that cannot be used, and the ImageConfig that chose the registry.
func (p *Pipeline) access(
	ctx context.Context, in Request, decision imagepolicy.Decision, access registry.Access, pull func(*registry.Puller) error,
) error {
	spec := in.Pkg.PackageSpec()
	access.Namespace = in.Pkg.GetNamespace()
	access.Own = p.ClusterPullSecrets && access.Namespace != ""
	if decision.Rewritten {
		// An administrator names this registry for all namespaces: it can be at a private address,
		// and no flag redirects it.
		access.Exact = true
	}

	if spec.ImagePullPolicy == corev1alpha1.ImagePullPolicyNever {
		access.Offline = true
		return pull(p.Puller.With(access))
	}

	named, shared := sources.PullSecrets(spec, in.Namespace), sources.PullSecret(p.Namespace, decision.PullSecret)
	keys, notes, err := p.Credentials.Keychain(ctx, in.Reader, named, shared, access.Own)
	if err != nil {
		return err
	}

	access.Keychain = keys
	err = pull(p.Puller.With(access))
	var failed *registry.PullError
	if decision.Rewritten {
		notes = append(slices.Clip(notes), fmt.Sprintf("the ImageConfig %s has it pulled in place of %s", decision.Rewriter, in.Image))
	}
	if len(notes) == 0 || imagepolicy.RefusalOf(err) != nil || !errors.As(err, &failed) {
		return err
	}

	detailed := *failed
	detailed.Details += " (" + strings.Join(notes, "; ") + ")"
	return &detailed
}

// decision returns the policies' decision about the image to pull.
func (in *Request) decision() imagepolicy.Decision {
	return in.Policies.Decide(in.Image, imagepolicy.Package)
}

// hostOf returns the registry of an image; references that cannot be parsed share one.
func hostOf(image string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return ""
	}
	return ref.Context().RegistryStr()
}

// overrideOf changes the references of images that a package names, by the policies or else by the
// settings of the manager.
func (p *Pipeline) overrideOf(in Request) func(string) string {
	return func(image string) string {
		if decision := in.Policies.Decide(image, imagepolicy.Package); decision.Rewritten {
			return decision.Pull
		}
		return p.Prefixes.Apply(image)
	}
}

// verify resolves the reference, and verifies the image with that digest. It returns the reference
// by digest. Its error is an *imagepolicy.Refusal if the image must not be used.
func (p *Pipeline) verify(ctx context.Context, in Request, decision imagepolicy.Decision) (ref string, outcome *imagepolicy.Outcome, err error) {
	if decision.Refusal != nil {
		return "", nil, decision.Refusal.About(in.Image)
	}

	var verified *imagepolicy.Verified
	err = p.access(ctx, in, decision, registry.Access{}, func(puller *registry.Puller) error {
		digest, err := puller.Resolve(ctx, decision.Pull)
		if err != nil {
			return err
		}
		ref = sources.ByDigest(decision.Pull, digest)
		verified, err = puller.Verify(ctx, ref, digest, decision.Verification, decision.VerificationKey)
		return err
	})

	outcome, err = decision.Outcome(in.Origin.Image, verified, err)
	return ref, outcome, err
}
