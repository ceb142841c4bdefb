package keyless

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/sigstore/rekor/pkg/generated/client/entries"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"lockstep.run/lockstep/internal/kube/panics"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/imagepolicy"
)

var errSlow = fmt.Errorf("the services did not answer within %v", limits.SigningTime)

// Signature is one in a bundle, and whom its certificate is issued to, and who attested that.
type Signature struct {
	Bundle          []byte
	Subject, Issuer string
}

// Identity names both.
func (s *Signature) Identity() string { return s.Subject + " (" + s.Issuer + ")" }

// Sign returns a signature of the image with a digest.
func (s *Services) Sign(ctx context.Context, token Token, digest string) (*Signature, error) {
	statement, err := imagepolicy.Statement(digest)
	if err != nil {
		return nil, err
	}
	return s.bundle(ctx, token, &sign.DSSEData{Data: statement, PayloadType: bundle.IntotoMediaType})
}

// SignBlob returns a signature of content, as cosign sign-blob makes it.
func (s *Services) SignBlob(ctx context.Context, token Token, content []byte) (*Signature, error) {
	return s.bundle(ctx, token, &sign.PlainData{Data: content})
}

func (s *Services) bundle(ctx context.Context, token Token, content sign.Content) (signature *Signature, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limits.SigningTime, errSlow)
	defer cancel()
	// The libraries expect answers of the form that they document; a panic is returned, and not logged.
	err = panics.Guard(logr.NewContext(ctx, logr.Discard()), "reading the answers of the services", func() error {
		made, err := s.ask(ctx, token, content)
		signature = made
		return err
	})
	switch cause := context.Cause(ctx); {
	case err == nil:
		return signature, nil
	case cause != nil:
		return nil, fmt.Errorf("sign by a certificate: %w", cause)
	}
	return nil, errors.New("sign by a certificate: " + token.redact(err.Error()))
}

func (s *Services) ask(ctx context.Context, token Token, content sign.Content) (*Signature, error) {
	answers, release := newTransport(ctx)
	defer release()
	key, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, err
	}
	const none = -1 // timeout: that of the context counts
	authority := &authority{Fulcio: sign.NewFulcio(&sign.FulcioOptions{BaseURL: strings.TrimSuffix(s.authority, "/"), Timeout: none, Transport: answers})}
	options := sign.BundleOptions{
		Context: ctx, CertificateProvider: authority, CertificateProviderOptions: &sign.CertificateProviderOptions{IDToken: token.text},
	}
	for _, stamp := range s.stamps {
		options.TimestampAuthorities = append(options.TimestampAuthorities, sign.NewTimestampAuthority(&sign.TimestampAuthorityOptions{URL: stamp.URL, Timeout: none, Transport: answers}))
	}
	for _, log := range s.logs {
		u, err := url.Parse(log.URL)
		if err != nil {
			return nil, err
		}
		// The library's own clients follow redirects, and read longer answers.
		client := &http.Client{Transport: answers}
		of := &sign.RekorOptions{
			Version:  log.MajorAPIVersion,
			Client:   entries.New(httptransport.NewWithClient(u.Host, cmp.Or(u.Path, "/"), []string{u.Scheme}, client), strfmt.Default),
			ClientV2: &tiles{client, u.JoinPath("api/v2/log/entries").String()},
		}
		options.TransparencyLogs = append(options.TransparencyLogs, sign.NewRekor(of))
	}
	made, err := sign.Bundle(content, key, options)
	if err != nil {
		return nil, err
	}
	b, err := bundle.NewBundle(made)
	if err != nil {
		return nil, err
	}
	data, err := b.MarshalJSON()
	switch {
	case err != nil:
		return nil, err
	case len(data) > limits.SignatureBytes:
		return nil, fmt.Errorf("the signature has %d bytes with what the services answered; no manager reads more than %d", len(data), limits.SignatureBytes)
	}
	return &Signature{Bundle: data, Subject: authority.subject.SubjectAlternativeName, Issuer: authority.subject.Issuer}, nil
}

// authority is a certificate authority whose certificates are of the key that was sent.
type authority struct {
	*sign.Fulcio
	subject certificate.Summary
}

// GetCertificate implements sign.CertificateProvider.
func (a *authority) GetCertificate(ctx context.Context, key sign.Keypair, options *sign.CertificateProviderOptions) ([]byte, error) {
	der, err := a.Fulcio.GetCertificate(ctx, key, options)
	if err != nil {
		return nil, fmt.Errorf("the certificate authority: %w", err)
	}
	issued, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the authority cannot be read: %w", err)
	}
	if public, ok := issued.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.GetPublicKey()) {
		return nil, errors.New("the certificate of the authority is of another key")
	}
	a.subject, err = certificate.SummarizeCertificate(issued)
	return der, err
}
