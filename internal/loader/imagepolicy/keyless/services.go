package keyless

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"time"

	prototrustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/outbound"
)

// The services of Sigstore that are for everyone, as cosign names them.
const (
	DefaultFulcioURL = "https://fulcio.sigstore.dev"
	DefaultRekorURL  = "https://rekor.sigstore.dev"
)

// Services are those that a signature is made with.
type Services struct {
	authority string         // certificate authority
	logs      []root.Service // transparency logs
	stamps    []root.Service // timestamp authorities
}

// ReadServices reads a file with a signing config of Sigstore, and returns those that are to be asked now; without a file
// these are the ones that are for everyone.
func ReadServices(file string) (*Services, error) {
	if file == "" {
		return &Services{authority: DefaultFulcioURL, logs: []root.Service{{URL: DefaultRekorURL, MajorAPIVersion: 1}}}, nil
	}
	text, err := readFile(file, limits.SigningConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("read the signing config %s: %w", file, err)
	}
	services, err := parse(text, time.Now())
	if err != nil {
		return nil, fmt.Errorf("the signing config %s: %w", file, err)
	}
	return services, nil
}

func parse(text []byte, now time.Time) (*Services, error) {
	config, err := root.NewSigningConfigProtobuf(text)
	if err != nil || config.GetMediaType() != root.SigningConfigMediaType02 {
		return nil, errors.New("it is none of " + root.SigningConfigMediaType02 + ", as cosign signing-config create makes them")
	}
	authorities, logs, stamps := servicesOf(config.GetCaUrls()), servicesOf(config.GetRekorTlogUrls()), servicesOf(config.GetTsaUrls())
	authority, err := root.SelectService(authorities, sign.FulcioAPIVersions, now)
	if err != nil {
		return nil, fmt.Errorf("caUrls: %w", err)
	}
	s := &Services{authority: authority.URL}
	if len(logs) > 0 {
		selected := root.ServiceConfiguration{Selector: config.GetRekorTlogConfig().GetSelector(), Count: config.GetRekorTlogConfig().GetCount()}
		if s.logs, err = root.SelectServices(logs, selected, sign.RekorAPIVersions, now); err != nil {
			return nil, fmt.Errorf("rekorTlogUrls: %w", err)
		}
	}
	if len(stamps) > 0 {
		selected := root.ServiceConfiguration{Selector: config.GetTsaConfig().GetSelector(), Count: config.GetTsaConfig().GetCount()}
		if s.stamps, err = root.SelectServices(stamps, selected, sign.TimestampAuthorityAPIVersions, now); err != nil {
			return nil, fmt.Errorf("tsaUrls: %w", err)
		}
	}
	return s, s.check()
}

func servicesOf(listed []*prototrustroot.Service) []root.Service {
	services := make([]root.Service, len(listed))
	for i, service := range listed {
		services[i] = root.NewService(service)
	}
	return services
}

// check refuses services that a token would be disclosed to on the way, and signatures whose time nothing attests: certificates are
// valid for minutes.
func (s *Services) check() error {
	urls := []string{s.authority}
	timed := len(s.stamps) > 0
	for _, log := range s.logs {
		urls = append(urls, log.URL)
		timed = timed || log.MajorAPIVersion == 1
	}
	for _, stamp := range s.stamps {
		urls = append(urls, stamp.URL)
	}
	if !timed {
		return errors.New("it has neither a log of version 1 (rekorTlogUrls) nor a timestamp authority (tsaUrls), so that signatures would not count once their certificates, which are valid for minutes, expire")
	}
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
			return fmt.Errorf("%q is no URL of https", outbound.Redact(text))
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && outbound.Of(ip).IsLoopback()
}

// readFile reads a file of limited size. Its errors do not quote its name.
func readFile(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, unnamed(err)
	}
	defer file.Close()
	return readAll(file, limit)
}

func readAll(in io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return text, unnamed(err)
}

// unnamed is an error without the name of its file: a token that is written in the place of a file's name is not shown.
func unnamed(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
