package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"lockstep.run/lockstep/internal/version"
)

// hosts are the registries that may be insecure, as references name them.
func (r *registryFlags) hosts() (map[string]bool, error) {
	hosts := map[string]bool{}
	for _, host := range r.insecure {
		reg, err := name.NewRegistry(host)
		if err != nil || host == "" {
			return nil, fmt.Errorf("invalid --insecure-registry %q: write a host, with its port where it has one, such as localhost:5000", host)
		}
		hosts[reg.RegistryStr()] = true
	}
	return hosts, nil
}

func (r *registryFlags) tags(refs []string) ([]name.Tag, error) {
	insecure, err := r.hosts()
	if err != nil {
		return nil, err
	}
	var tags []name.Tag
	for _, text := range refs {
		tag, err := name.NewTag(text)
		if err != nil {
			return nil, fmt.Errorf("invalid tag specified as parameter %q: write it as host/path:tag", text)
		}
		if r.trusts(tag.RegistryStr()) || insecure[tag.RegistryStr()] {
			tag, _ = name.NewTag(text, name.Insecure)
		}
		tags = append(tags, tag)
	}
	return tags, nil
}

func (r *registryFlags) push(ctx context.Context, image v1.Image, tags []name.Tag) error {
	for _, tag := range tags {
		carrier, err := r.transport(tag.Registry)
		if err != nil {
			return err
		}
		err = remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
			remote.WithTransport(carrier), remote.WithUserAgent("kubectl-package/"+version.Get()))
		if err != nil {
			return pushError(tag, err)
		}
	}
	return nil
}

func pushError(tag name.Tag, err error) error {
	var answer *transport.Error
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("push %s: interrupted", tag)
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return fmt.Errorf("push %s: the registry refuses these credentials: %w. Log in with docker login or an equal tool", tag, err)
	case errors.Is(err, errPlainHTTP):
		return fmt.Errorf("push %s: the registry does not speak TLS. If it is yours to trust, add --insecure-registry %s", tag, tag.RegistryStr())
	}
	return fmt.Errorf("push %s: %w", tag, err)
}

// transport is verified TLS, except for insecure registries.
func (r *registryFlags) transport(reg name.Registry) (http.RoundTripper, error) {
	hosts, err := r.hosts()
	if err != nil {
		return nil, err
	}
	carrier := http.DefaultTransport.(*http.Transport).Clone()
	carrier.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if r.trusts(reg.RegistryStr()) || hosts[reg.RegistryStr()] {
		carrier.TLSClientConfig.InsecureSkipVerify = true //nolint:gosec // asked for by --insecure-registry
		return carrier, nil
	}
	if r.caFile != "" {
		if carrier.TLSClientConfig.RootCAs, err = authorities(r.caFile); err != nil {
			return nil, err
		}
	}
	return tlsOnly{carrier}, nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --registry-ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--registry-ca-file %s has no certificate in PEM form", file)
	}
	return pool, nil
}

var errPlainHTTP = errors.New("plain HTTP")

// tlsOnly rejects plain HTTP, to which the library falls back on private addresses.
type tlsOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t tlsOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errPlainHTTP
	}
	return t.next.RoundTrip(request)
}
