package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/cobra"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/desired"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/registry"
)

// verifyCommand is kubectl package verify.
type verifyCommand struct {
	command.Command
	registry content.RegistryFlags
	keys     []string
	identity imagepolicy.Identity
	root     string
	noLog    bool
	manager  string
}

// newVerify returns the command verify.
func newVerify(on command.Command) *cobra.Command {
	c := verifyCommand{Command: on}
	cmd := command.OnSource(&cobra.Command{
		Use:   "verify IMAGE",
		Short: "Verify the signature of an image as the manager does",
		Long: `Verify the signature of an image as the manager does: by the ImageConfigs of the cluster, by one of the
public keys of --key, or by the identity of --certificate-identity. It only queries the registry of the
image. An identity needs a --trusted-root. Exits with 1 without a good signature. The error starts with

  NoSignature          the registry has no signature of this digest
  SignatureInvalid     no signature of this digest is by a given key or authority
  IdentityMismatch     it is good, but of another identity
  KeyExpired           it is good, but its key is not valid now
  TrustRootInvalid     a given key or trusted root cannot be used
  RegistryUnreachable  the registry did not answer whether there is one`,
		Example: `  kubectl package verify registry.example.com/cert-operator:v1.2.0
  kubectl package verify registry.example.com/cert-operator:v1.2.0 --key release.pub
  kubectl package verify ghcr.io/acme/shop:v1.0.0 --trusted-root trusted_root.json \
    --certificate-oidc-issuer https://token.actions.githubusercontent.com \
    --certificate-identity-regexp 'https://github\.com/acme/shop/.*'`,
		Args: command.Takes("IMAGE"),
	}, c.run, c.check)

	flags := cmd.Flags()
	flags.StringArrayVar(&c.keys, "key", nil, "verify with the public key in this PEM `file`; repeatable, one of them suffices")
	flags.StringVar(&c.identity.Subject, "certificate-identity", "", "require this `subject` of the certificate")
	flags.StringVar(&c.identity.SubjectRegExp, "certificate-identity-regexp", "", "require that the whole subject of the certificate matches this regular `expression`")
	flags.StringVar(&c.identity.Issuer, "certificate-oidc-issuer", "", "require this `issuer` of the subject")
	flags.StringVar(&c.identity.IssuerRegExp, "certificate-oidc-issuer-regexp", "", "require that the whole issuer matches this regular `expression`")
	flags.StringVar(&c.root, "trusted-root", "", "trust the certificate authorities and logs in this `file`, in the format of Sigstore's trusted_root.json")
	flags.BoolVar(&c.noLog, "insecure-ignore-tlog", false, "accept a signature without an entry in a transparency log")
	flags.StringVar(&c.manager, "manager-namespace", corev1alpha1.DefaultNamespace, "the `namespace` of the manager, with the keys that ImageConfigs name")
	c.registry.Add(cmd)
	c.Connects(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions

	return cmd
}

// keyless reports whether the flags require an identity instead of a key.
func (c *verifyCommand) keyless() bool { return c.identity != imagepolicy.Identity{} }

// check returns an error of usage.
func (c *verifyCommand) check() error {
	switch {
	case c.keyless() && c.root == "":
		return errors.New("the authorities that issue the certificates are not known: add --trusted-root FILE")
	case !c.keyless() && c.root != "":
		return errors.New("--trusted-root is for certificates: add --certificate-identity and --certificate-oidc-issuer")
	}
	return nil
}

// run verifies an image by the flags, or else by the ImageConfigs of the cluster.
func (c *verifyCommand) run(ctx context.Context, ref string) error {
	decisions, keys := []imagepolicy.Decision{{Pull: ref}}, authn.Keychain(nil)
	var err error
	if len(c.keys) > 0 || c.keyless() {
		decisions[0].Verification, err = c.verification()
	} else {
		decisions, keys, err = c.policies(ctx, ref)
	}

	if err != nil {
		return err
	}
	pull := decisions[0].Pull // it is the same for all
	puller, err := c.registry.Puller("", pull)
	if err != nil {
		return err
	}

	puller = puller.With(registry.Access{Keychain: keys})
	digest, err := puller.Resolve(ctx, pull)
	if err != nil {
		return content.Advise(err)
	}
	// The image is verified by digest, so that the printed digest is the verified one.
	var lines []string
	for _, d := range decisions {
		verified, err := puller.Verify(ctx, pull, digest, d.Verification, d.VerificationKey)
		if refusal := imagepolicy.RefusalOf(err); refusal != nil {
			return desired.RefusedImage(ref, refusal)
		}
		if err != nil {
			return err
		}
		verified.Policy = d.Policy
		lines = append(lines, "  "+terminal.Line(verified.String())+"\n")
	}

	fmt.Fprintf(c.Streams.Out, "Verified %s\n  digest  %s\n%s", terminal.Line(ref), digest, strings.Join(lines, ""))
	return nil
}

// policies returns the decisions of the cluster's ImageConfigs about an image: one for each purpose
// with a verification, along with the pull secret of the ImageConfig.
func (c *verifyCommand) policies(ctx context.Context, ref string) (decisions []imagepolicy.Decision, keys authn.Keychain, err error) {
	cl, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	images, err := desired.ReadImages(ctx, cl, c.manager)
	// A missing policy must not look like a success.
	if err == nil && images.Unread != nil {
		err = cl.Explain("read ImageConfigs and their keys", images.Unread)
	}

	if err != nil {
		return nil, nil, err
	}

	for _, purpose := range []imagepolicy.Purpose{imagepolicy.Package, imagepolicy.Repository} {
		decision, own, _, err := images.Decide(ctx, ref, purpose)
		if err != nil {
			return nil, nil, err
		}
		if decision.Verification == nil {
			continue
		}
		keys = own
		// The same policy can decide about both purposes.
		if !slices.ContainsFunc(decisions, func(d imagepolicy.Decision) bool { return d.Policy == decision.Policy }) {
			decisions = append(decisions, decision)
		}
	}

	if len(decisions) == 0 {
		err = fmt.Errorf("no ImageConfig of the cluster verifies %s: create one, or name the public key with --key FILE", ref)
	}
	return decisions, keys, err
}

// verification returns the verification of the flags. Authorities are named after their files.
func (c *verifyCommand) verification() (*imagepolicy.Verification, error) {
	v := &imagepolicy.Verification{Mode: imagepolicy.Enforce}
	for _, file := range c.keys {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
		v.Authorities = append(v.Authorities, imagepolicy.Key(file, text, time.Time{}, time.Time{}))
	}

	if c.keyless() {
		text, err := os.ReadFile(c.root)
		if err != nil {
			return nil, fmt.Errorf("read the trusted root: %w", err)
		}
		v.Authorities = append(v.Authorities, imagepolicy.Keyless(c.root, []imagepolicy.Identity{c.identity}, text, c.noLog))
	}

	return v, nil
}
