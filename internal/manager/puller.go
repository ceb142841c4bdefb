package manager

import (
	"fmt"

	"github.com/go-logr/logr"

	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/kube/version"
	"lockstep.run/lockstep/internal/loader/registry"
)

// newPuller returns the puller that packages and repositories share, so that an image of both is
// downloaded once and the limits on connections hold for the process.
func newPuller(c *Config, account *quota.Memory, log logr.Logger) (*registry.Puller, error) {
	puller, err := registry.NewPuller(registry.Options{
		CABundle: c.RegistryCAFile, Authorities: c.RegistryCAs, Proxies: c.RegistryProxies, InsecureRegistries: c.InsecureRegistries, CacheDir: c.CacheDir,
		PackageBytes: account.PackageBytes(),
		Policy:       c.policy(c.AllowLocalSources), ImagePrefixes: c.ImagePrefixes, RegistryHosts: c.RegistryHosts,
		UserAgent:    "lockstep-manager/" + version.Get(),
		OnCacheError: func(err error) { log.Error(err, "the image cache cannot be used; pulls go on without it") },
	})
	if err != nil {
		return nil, fmt.Errorf("set up pulling: %w", err)
	}
	return puller, nil
}
