package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/command"
	"lockstep.run/lockstep/internal/cli/content"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
	"lockstep.run/lockstep/internal/loader/imagepolicy/keyless"
)

// passwordVariable has the password of an encrypted key, as for cosign.
const passwordVariable = "COSIGN_PASSWORD"

type signCommand struct {
	streams  genericiooptions.IOStreams
	registry content.RegistryFlags
	key      string
	bundle   string
	token    string
	services string
	// identity is whom the certificate is issued to that the signature was made with.
	identity string
}

func newSign(streams genericiooptions.IOStreams) *cobra.Command {
	c := signCommand{streams: streams}
	cmd := &cobra.Command{
		Use:   "sign IMAGE",
		Short: "Sign an image with a private key or an identity",
		Long: `Sign an image, and put the signature beside it into its registry.

The digest that the reference leads to is signed; a tag that moves later leads to an image without this
signature. The signature is a Sigstore bundle that refers to the image, as cosign 3 makes it, so that
cosign verifies it, too; one by --key is in no transparency log. The key is one of cosign generate-key-pair,
for whose password is asked where COSIGN_PASSWORD does not have it, or another ECDSA, RSA or Ed25519 key
in PEM form.

With --identity-token (keyless) a key pair is made for this signature, is never stored, and a certificate
authority certifies it for the identity of an OIDC token, whose audience is mostly "sigstore". The services are
those of --signing-config, a file of cosign signing-config create, or without it those of Sigstore that are for
everyone: ` + keyless.DefaultFulcioURL + ` and ` + keyless.DefaultRekorURL + `, a public log that
shows the identity for ever. The token is sent to the certificate authority alone. verify needs a trusted root
of the same services.

With --bundle a signature that was made before is put beside the image, such as that of a release, once it
is seen to name its digest; it is not verified, for which there is verify.

A registry without the API for referrers gets the tag that the distribution specification has for them. ECDSA
keys are those of P-256, P-384 and P-521, RSA keys have 2048 to 8192 bits.`,
		Example: `  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out release.key
  openssl pkey -in release.key -pubout -out release.pub
  kubectl package sign registry.example.com/cert-operator:v1.2.0 --key release.key
  kubectl package verify registry.example.com/cert-operator:v1.2.0 --key release.pub

  # By an identity; the token is in a file
  kubectl package sign registry.example.com/cert-operator:v1.2.0 --identity-token token --signing-config signing-config.json

  # A release that was pushed to a registry of one's own
  kubectl package sign registry.example.com/lockstep-manager:v0.2.0 --bundle lockstep-manager-v0.2.0.sigstore.json`,
		Args: command.Takes("IMAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case c.key == "" && c.bundle == "" && c.token == "":
				return command.UsageError(cmd, errors.New("it is not said with which key: add --key FILE, or --identity-token FILE"))
			case c.bundle != "" && c.key+c.token != "":
				return command.UsageError(cmd, errors.New("--bundle has a signature already: leave --key and --identity-token out"))
			case c.key != "" && c.token != "":
				return command.UsageError(cmd, errors.New("a signature is by a key or by an identity: leave --key or --identity-token out"))
			case c.services != "" && c.token == "":
				return command.UsageError(cmd, errors.New("--signing-config is for signatures by an identity: add --identity-token FILE"))
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&c.key, "key", "", "`file` with the private key, in PEM form")
	cmd.Flags().StringVar(&c.bundle, "bundle", "", "`file` with a signature of the image that was made before, as a Sigstore bundle")
	cmd.Flags().StringVar(&c.token, "identity-token", "", "`file` with an OIDC token, whose identity a certificate is issued to; - for standard input")
	cmd.Flags().StringVar(&c.services, "signing-config", "", "`file` with the services that are asked for the certificate, a log entry and timestamps")
	c.registry.Add(cmd)
	return cmd
}

func (c *signCommand) run(ctx context.Context, ref string) error {
	sign, err := c.signer(ctx)
	if err != nil {
		return err
	}
	image, signature, err := c.registry.Attach(ctx, ref, sign)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.streams.Out, "Signed %s\n  digest     %s\n  signature  %s\n", terminal.Line(ref), image, signature)
	if c.identity != "" {
		fmt.Fprintf(c.streams.Out, "  identity   %s\n", terminal.Line(c.identity))
	}
	return nil
}

// signer returns the signature of a digest, made or read.
func (c *signCommand) signer(ctx context.Context) (func(digest string) ([]byte, error), error) {
	if c.bundle != "" {
		bundle, err := readBundle(c.bundle)
		return func(digest string) ([]byte, error) {
			if err := imagepolicy.SignsImage(bundle, digest); err != nil {
				return nil, fmt.Errorf("the signature in %s: %w", c.bundle, err)
			}
			return bundle, nil
		}, err
	}
	if c.token != "" {
		return c.identified(ctx)
	}
	text, err := os.ReadFile(c.key)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	signer, err := imagepolicy.NewSigner(text, c.password)
	if err != nil {
		return nil, fmt.Errorf("the key in %s: %w", c.key, err)
	}
	return signer.Sign, nil
}

// identified returns what signs by a certificate for the identity of the token.
func (c *signCommand) identified(ctx context.Context) (func(digest string) ([]byte, error), error) {
	services, err := keyless.ReadServices(c.services)
	if err != nil {
		return nil, err
	}
	token, err := keyless.ReadToken(c.token, c.streams.In)
	if err != nil {
		return nil, err
	}
	return func(digest string) ([]byte, error) {
		signature, err := services.Sign(ctx, token, digest)
		if err != nil {
			return nil, err
		}
		c.identity = signature.Identity()
		return signature.Bundle, nil
	}, nil
}

// readBundle reads a file that managers read, too, once it is attached.
func readBundle(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the signature: %w", err)
	}
	defer file.Close()
	bundle, err := io.ReadAll(io.LimitReader(file, limits.SignatureBytes+1))
	if err == nil && len(bundle) > limits.SignatureBytes {
		err = fmt.Errorf("it has more than %d bytes, which no manager reads", limits.SignatureBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read the signature in %s: %w", path, err)
	}
	return bundle, nil
}

// password of the key: of the environment, or typed.
func (c *signCommand) password() ([]byte, error) {
	if text, found := os.LookupEnv(passwordVariable); found {
		return []byte(text), nil
	}
	in, ok := c.streams.In.(*os.File)
	if !ok || !command.Interactive(c.streams) {
		return nil, errors.New("it is encrypted: set " + passwordVariable)
	}
	fmt.Fprint(c.streams.ErrOut, "Password of the private key: ")
	text, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(c.streams.ErrOut)
	return text, err
}
