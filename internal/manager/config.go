package manager

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/registry"
)

// Config has the values of the flags.
type Config struct {
	// Kubeconfig names a file; empty means the environment's, or else the service account of the
	// pod.
	Kubeconfig string
	// Namespace is the manager's. It holds the Lease, and the Secrets and ConfigMaps that
	// ClusterPackages name.
	Namespace string
	// ServiceAccount is the name of the manager's own, whose pull secrets hold for
	// all packages.
	ServiceAccount string
	// DefaultServiceAccount is the account of Packages that do not name one, in their namespace;
	// empty for the manager's own identity. It is not for ClusterPackages. RequireServiceAccount
	// selects the packages that are refused without one.
	DefaultServiceAccount string
	RequireServiceAccount accountsRequired
	// PermissionCeiling is the ClusterRole that bounds the rights of packages; empty for no rights.
	PermissionCeiling string
	// RequireVerification refuses images of packages and repositories that no ImageConfig verifies.
	RequireVerification bool
	// SharedPullSecrets selects the packages that use the manager's own pull secrets, and its
	// cache: sharedByAll or sharedByCluster.
	SharedPullSecrets string
	// LeaderElect lets only the holder of the Lease work.
	LeaderElect bool
	// MetricsAddress and ProbeAddress are the addresses to listen on; "0" means none.
	MetricsAddress string
	ProbeAddress   string
	// MetricsSecure serves metrics over TLS to clients that are allowed to get them.
	MetricsSecure bool
	// PprofAddress serves profiles of this process, to all clients that can reach it; "0"
	// or empty disables them.
	PprofAddress string
	// LogLevel is debug, info, warn or error.
	LogLevel string
	// ImagePrefixes replace prefixes of image references: of packages, and of images and
	// dependencies in their locks. RegistryHosts then redirect pulls.
	ImagePrefixes, RegistryHosts registry.Overrides
	// PackageHashModifier is part of every fingerprint: a change renders all packages
	// again.
	PackageHashModifier int32
	// CacheDir keeps pulled images; if it is empty, they are not kept.
	CacheDir string
	// InsecureRegistries can be reached by plain HTTP.
	InsecureRegistries []string
	// RegistryCAFile has certificate authorities to trust in addition to the system's.
	RegistryCAFile string
	// RegistryCAs and RegistryProxies are the certificate authorities and proxies of single
	// registries.
	RegistryCAs     registry.Authorities
	RegistryProxies registry.Proxies
	// AllowLocalSources permits repositories on loopback and link-local addresses, and registries
	// on loopback ones.
	AllowLocalSources bool
	// AllowPrivateSources are the private networks with images, repositories and targets
	// of namespaced objects.
	AllowPrivateSources outbound.Networks
	// AllowLocalTargets permits targets on loopback and link-local addresses.
	AllowLocalTargets bool
	// Class and TargetKubeconfig make this process the agent of a class: it only rolls the
	// ObjectSetPhases of the class out to the cluster of the kubeconfig file. WatchNamespace is the
	// namespace of the ObjectSetPhases, by default the process's own. It is empty with
	// WatchAllNamespaces, which makes the agent roll out ClusterObjectSetPhases, too.
	Class, TargetKubeconfig, WatchNamespace string
	WatchAllNamespaces                      bool
	// Pace of the controllers of packages and repositories.
	Pace limits.Pace
	// Version prints the version instead of running the manager.
	Version bool

	// Account is the memory of the process, which Run sets; nil means no bound.
	Account *quota.Memory
}

// Values of --shared-pull-secrets.
const (
	sharedByAll     = "all"
	sharedByCluster = "cluster"
)

// defaultServiceAccount is the name in config; a test compares them.
const defaultServiceAccount = "lockstep-manager"

// serviceAccountNamespace is the file with the namespace of the pod.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Parse reads flags. Defaults come from the environment if a variable is named after the flag;
// PKO_NAMESPACE and LOG_LEVEL are Package Operator's.
func Parse(args []string) (*Config, error) { return parse(args, os.Stderr) }

// Usage returns the output of --help.
func Usage() string {
	var out strings.Builder
	_, _ = parse([]string{"--help"}, &out)
	return out.String()
}

// parse reads the flags and checks them. The help goes to usage.
func parse(args []string, usage io.Writer) (*Config, error) {
	c := &Config{}
	flags := pflag.NewFlagSet("lockstep-manager", pflag.ContinueOnError)
	flags.SetOutput(usage)
	// Related flags stay together in the help.
	flags.SortFlags = false
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file of the API server (default: $KUBECONFIG, else the pod's service account)")
	flags.StringVar(&c.Namespace, "namespace", defaultNamespace(), "namespace of the manager, of its Lease, and of the objects that ClusterPackages name [LOCKSTEP_NAMESPACE, PKO_NAMESPACE]")
	flags.StringVar(&c.ServiceAccount, "service-account-name",
		cmp.Or(os.Getenv("LOCKSTEP_SERVICE_ACCOUNT_NAME"), os.Getenv("PKO_SERVICE_ACCOUNT_NAME"), defaultServiceAccount),
		"service account of the manager, in --namespace; its pull secrets apply to all packages [LOCKSTEP_SERVICE_ACCOUNT_NAME, PKO_SERVICE_ACCOUNT_NAME]")
	c.accessFlags(flags)
	flags.BoolVar(&c.LeaderElect, "leader-elect", true, "work only while holding the Lease; without it, never run a second manager")
	flags.StringVar(&c.MetricsAddress, "metrics-bind-address", ":8443", "address of /metrics, 0 for none")
	flags.BoolVar(&c.MetricsSecure, "metrics-secure", true,
		"serve /metrics over TLS, with a certificate of its own, and only to users with the right to get /metrics; otherwise over plain HTTP to every client")
	flags.StringVar(&c.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz, 0 for none")
	flags.StringVar(&c.PprofAddress, "pprof-bind-address", "0", "address of /debug/pprof, 0 for none; it does not require credentials, so keep it to loopback")
	flags.StringVar(&c.LogLevel, "log-level", cmp.Or(os.Getenv("LOCKSTEP_LOG_LEVEL"), os.Getenv("LOG_LEVEL"), "info"),
		"debug, info, warn or error, or 1, 0, -1, -2 [LOCKSTEP_LOG_LEVEL, LOG_LEVEL]")
	flags.StringVar(&c.CacheDir, "cache-dir", os.Getenv("LOCKSTEP_CACHE_DIR"), "folder that keeps pulled images (default: none) [LOCKSTEP_CACHE_DIR]")
	flags.StringArrayVar(&c.InsecureRegistries, "insecure-registry", fields(os.Getenv("LOCKSTEP_INSECURE_REGISTRIES")),
		"HOST[:PORT] to reach by plain HTTP or with a certificate that does not verify; repeatable [LOCKSTEP_INSECURE_REGISTRIES, separated by commas]")
	flags.StringVar(&c.RegistryCAFile, "registry-ca-file", os.Getenv("LOCKSTEP_REGISTRY_CA_FILE"),
		"PEM file with certificate authorities of registries to trust in addition to the system's [LOCKSTEP_REGISTRY_CA_FILE]")
	var authorities, proxies []string // not defaults from the environment: --help shows those
	flags.StringArrayVar(&authorities, "registry-ca", nil,
		"HOST[:PORT]=FILE: PEM file with certificate authorities of one registry to trust in addition to --registry-ca-file; repeatable [LOCKSTEP_REGISTRY_CAS, separated by commas]")
	flags.StringArrayVar(&proxies, "registry-proxy", nil,
		"HOST[:PORT]=URL: proxy of one registry, or direct for none, instead of the environment's; repeatable [LOCKSTEP_REGISTRY_PROXIES, separated by commas]")
	flags.BoolVar(&c.AllowLocalSources, "allow-local-sources", os.Getenv("LOCKSTEP_ALLOW_LOCAL_SOURCES") == "true",
		"fetch repositories from loopback and link-local addresses and images from loopback addresses too, and send credentials over plain HTTP [LOCKSTEP_ALLOW_LOCAL_SOURCES=true]")
	flags.BoolVar(&c.AllowLocalTargets, "allow-local-targets", os.Getenv("LOCKSTEP_ALLOW_LOCAL_TARGETS") == "true",
		"install packages in clusters at loopback and link-local addresses too [LOCKSTEP_ALLOW_LOCAL_TARGETS=true]")
	private := os.Getenv("LOCKSTEP_ALLOW_PRIVATE_SOURCES")
	flags.StringVar(&private, "allow-private-sources", private,
		"CIDR,…|all: allow images, repositories and targets of namespaced objects in these private networks (default: none) [LOCKSTEP_ALLOW_PRIVATE_SOURCES]")
	c.agentFlags(flags)
	var prefixes, hosts string
	flags.StringVar(&prefixes, "image-prefix-overrides", cmp.Or(os.Getenv("LOCKSTEP_IMAGE_PREFIX_OVERRIDES"), os.Getenv("PKO_IMAGE_PREFIX_OVERRIDES")),
		"FROM=TO,…: replacements of the prefixes of image references in packages and their locks; the longest match wins [LOCKSTEP_IMAGE_PREFIX_OVERRIDES, PKO_IMAGE_PREFIX_OVERRIDES]")
	flags.StringVar(&hosts, "registry-host-overrides", cmp.Or(os.Getenv("LOCKSTEP_REGISTRY_HOST_OVERRIDES"), os.Getenv("PKO_REGISTRY_HOST_OVERRIDES")),
		"FROM=HOST,…: pull packages from HOST instead of the registry FROM; applied after the prefixes [LOCKSTEP_REGISTRY_HOST_OVERRIDES, PKO_REGISTRY_HOST_OVERRIDES]")
	modifier := os.Getenv("PKO_PACKAGE_HASH_MODIFIER")
	flags.StringVar(&modifier, "package-hash-modifier", modifier, "a number; changing it renders every package again [PKO_PACKAGE_HASH_MODIFIER]")
	flags.Float64Var((*float64)(&c.Pace), "pace", 1, "share of the pauses between fetches and repairs; for tests")
	flags.Lookup("pace").Hidden = true
	flags.BoolVar(&c.Version, "version", false, "print the version and exit")
	checkFormer := formerFlags(flags)
	if err := flags.Parse(doubleDashes(args)); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: use flags only", flags.Arg(0))
	}

	var err error
	if c.ImagePrefixes, err = registry.ParseOverrides(prefixes); err != nil {
		return nil, fmt.Errorf("--image-prefix-overrides: %w", err)
	}
	if c.RegistryHosts, err = registry.ParseHostOverrides(hosts); err != nil {
		return nil, fmt.Errorf("--registry-host-overrides: %w", err)
	}
	if c.AllowPrivateSources, err = outbound.ParseNetworks(private); err != nil {
		return nil, fmt.Errorf("--allow-private-sources: %w", err)
	}
	if c.RegistryCAs, err = registry.ParseAuthorities(orVariable(authorities, "LOCKSTEP_REGISTRY_CAS")); err != nil {
		return nil, fmt.Errorf("--registry-ca: %w", err)
	}
	if c.RegistryProxies, err = registry.ParseProxies(orVariable(proxies, "LOCKSTEP_REGISTRY_PROXIES")); err != nil {
		return nil, fmt.Errorf("--registry-proxy: %w", err)
	}
	if c.PackageHashModifier, err = number(modifier); err != nil {
		return nil, fmt.Errorf("--package-hash-modifier: %w", err)
	}
	if err := checkFormer(c); err != nil {
		return nil, err
	}
	return c, c.validate()
}

// accessFlags select the accounts and credentials with which packages are installed, and the
// trusted images.
func (c *Config) accessFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.DefaultServiceAccount, "default-service-account", os.Getenv("LOCKSTEP_DEFAULT_SERVICE_ACCOUNT"),
		"service account of Packages that do not name one, in their namespace (default: none, the manager itself) [LOCKSTEP_DEFAULT_SERVICE_ACCOUNT]")
	c.RequireServiceAccount = accountsRequired(cmp.Or(os.Getenv("LOCKSTEP_REQUIRE_SERVICE_ACCOUNT"), "false")) // validated with the others
	flags.Var(&c.RequireServiceAccount, "require-service-account",
		"refuse Packages that neither name a service account nor get the default; with all, also ClusterPackages [LOCKSTEP_REQUIRE_SERVICE_ACCOUNT]")
	flags.Lookup("require-service-account").NoOptDefVal = string(accountsOfNamespaces)
	flags.StringVar(&c.PermissionCeiling, "permission-ceiling", os.Getenv("LOCKSTEP_PERMISSION_CEILING"),
		"ClusterRole with the maximum of the rights that packages get by permissions.rules of their manifests (default: none, they get no rights) [LOCKSTEP_PERMISSION_CEILING]")
	flags.BoolVar(&c.RequireVerification, "require-verification", os.Getenv("LOCKSTEP_REQUIRE_VERIFICATION") == "true",
		"refuse images of packages and repositories that no ImageConfig verifies [LOCKSTEP_REQUIRE_VERIFICATION]")
	flags.StringVar(&c.SharedPullSecrets, "shared-pull-secrets", cmp.Or(os.Getenv("LOCKSTEP_SHARED_PULL_SECRETS"), sharedByAll),
		"all, or cluster: share the manager's pull secrets and cached images with all packages, or only with ClusterPackages and ClusterPackageRepositories [LOCKSTEP_SHARED_PULL_SECRETS]")
}

// policy returns the allowed addresses of sources, or of targets.
func (c *Config) policy(local bool) outbound.Policy {
	return outbound.Policy{Local: local, Private: c.AllowPrivateSources}
}

// validate checks the values that types of flags do not. The manager would otherwise start, lead,
// and fail at the first object.
func (c *Config) validate() error {
	// A misspelt restriction would have no effect.
	for _, variable := range []string{"LOCKSTEP_REQUIRE_VERIFICATION", "LOCKSTEP_ALLOW_LOCAL_SOURCES", "LOCKSTEP_ALLOW_LOCAL_TARGETS"} {
		if value := os.Getenv(variable); value != "" && value != "true" && value != "false" {
			return fmt.Errorf("%s %q: want true or false", variable, value)
		}
	}

	if errs := validation.IsDNS1123Label(c.Namespace); len(errs) > 0 {
		return fmt.Errorf("--namespace %q: %s", c.Namespace, strings.Join(errs, "; "))
	}
	if errs := validation.IsDNS1123Subdomain(c.ServiceAccount); len(errs) > 0 {
		return fmt.Errorf("--service-account-name %q: %s", c.ServiceAccount, strings.Join(errs, "; "))
	}
	if errs := validation.IsDNS1123Subdomain(c.DefaultServiceAccount); c.DefaultServiceAccount != "" && len(errs) > 0 {
		return fmt.Errorf("--default-service-account %q: %s", c.DefaultServiceAccount, strings.Join(errs, "; "))
	}
	if err := c.RequireServiceAccount.Set(string(c.RequireServiceAccount)); err != nil {
		return fmt.Errorf("LOCKSTEP_REQUIRE_SERVICE_ACCOUNT %q: %w", c.RequireServiceAccount, err)
	}
	if errs := content.IsPathSegmentName(c.PermissionCeiling); c.PermissionCeiling != "" && len(errs) > 0 {
		return fmt.Errorf("--permission-ceiling %q: %s", c.PermissionCeiling, strings.Join(errs, "; "))
	}
	if c.SharedPullSecrets != sharedByAll && c.SharedPullSecrets != sharedByCluster {
		return fmt.Errorf("--shared-pull-secrets %q: want %s or %s", c.SharedPullSecrets, sharedByAll, sharedByCluster)
	}
	if _, err := level(c.LogLevel); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	if !(c.Pace > 0 && c.Pace <= 1) {
		return fmt.Errorf("--pace %v: want more than 0 and at most 1", c.Pace)
	}
	return c.validateAgent()
}

// defaultNamespace returns the namespace of the environment, of the pod, or of the default
// installation.
func defaultNamespace() string {
	if ns := cmp.Or(os.Getenv("LOCKSTEP_NAMESPACE"), os.Getenv("PKO_NAMESPACE")); ns != "" {
		return ns
	}
	if ns, err := os.ReadFile(serviceAccountNamespace); err == nil && len(ns) > 0 {
		return strings.TrimSpace(string(ns))
	}
	return corev1alpha1.DefaultNamespace
}

// orVariable returns the values of a flag, or else the values of a variable.
func orVariable(values []string, variable string) []string {
	if len(values) > 0 {
		return values
	}
	return fields(os.Getenv(variable))
}

// fields splits a list at commas and spaces.
func fields(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
