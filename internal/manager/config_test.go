package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/config"
	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/loader/registry"
	"lockstep.run/lockstep/test/require"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		want func(*Config)
	}{
		"defaults": {want: func(*Config) {}},
		"all flags": {
			args: []string{
				"--kubeconfig=k", "--namespace", "n", "--service-account-name=sa", "--leader-elect=false", "--metrics-bind-address=0", "--metrics-secure=false", "--health-probe-bind-address=:1", "--pprof-bind-address=:2",
				"--log-level=debug", "--cache-dir=/c", "--insecure-registry", "a:1", "--insecure-registry", "b", "--registry-ca-file=ca", "--registry-ca=a:443=b.pem", "--registry-ca", "c=d.pem", "--registry-proxy=a=direct", "--registry-proxy=c=http://proxy:3128", "--shared-pull-secrets=cluster", "--require-service-account", "--permission-ceiling=most", "--allow-local-sources", "--allow-private-sources=10.0.0.0/8,fd00::1", "--pace=0.1", "--version",
			},
			want: func(c *Config) {
				*c = Config{
					Kubeconfig: "k", Namespace: "n", ServiceAccount: "sa", MetricsAddress: "0", ProbeAddress: ":1", PprofAddress: ":2", LogLevel: "debug", CacheDir: "/c",
					InsecureRegistries: []string{"a:1", "b"}, RegistryCAFile: "ca", RegistryCAs: registry.Authorities{"a": "b.pem", "c": "d.pem"}, RegistryProxies: registry.Proxies{"a": nil, "c": {Scheme: "http", Host: "proxy:3128"}}, AllowLocalSources: true, SharedPullSecrets: "cluster", RequireServiceAccount: accountsOfNamespaces, PermissionCeiling: "most", Pace: 0.1, Version: true,
					AllowPrivateSources: outbound.Networks{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::1/128")},
				}
			},
		},
		"accounts of all":        {args: []string{"--require-service-account=all"}, want: func(c *Config) { c.RequireServiceAccount = accountsOfAll }},
		"accounts by a variable": {env: map[string]string{"LOCKSTEP_REQUIRE_SERVICE_ACCOUNT": "all"}, want: func(c *Config) { c.RequireServiceAccount = accountsOfAll }},
		"no accounts, by flag":   {args: []string{"--require-service-account=false"}, env: map[string]string{"LOCKSTEP_REQUIRE_SERVICE_ACCOUNT": "true"}, want: func(*Config) {}},
		"Package Operator's names": {
			args: []string{
				"-metrics-addr=0", "-pprof-addr=:2", "-enable-leader-election=false", "-namespace", "n", "-service-account-namespace=n", "-log-level=1",
				"-object-template-resource-retry-interval=30s", "-sub-component-affinity", "{}",
			},
			want: func(c *Config) {
				c.MetricsAddress, c.PprofAddress, c.LeaderElect, c.Namespace, c.LogLevel = "0", ":2", false, "n", "1"
			},
		},
		"an agent": {
			args: []string{"--class=edge", "--target-kubeconfig=/etc/target", "--watch-namespace=edge"},
			want: func(c *Config) { c.Class, c.TargetKubeconfig, c.WatchNamespace = "edge", "/etc/target", "edge" },
		},
		"Package Operator's agent": {
			args: []string{"-target-cluster-kubeconfig-file=/etc/target", "-enable-leader-election"},
			want: func(c *Config) {
				c.Class, c.TargetKubeconfig, c.WatchNamespace = corev1alpha1.PhaseClassHostedCluster, "/etc/target", corev1alpha1.DefaultNamespace
			},
		},
		"an agent of its own namespace": {
			args: []string{"--target-kubeconfig=/etc/target", "--namespace=hcp-a"},
			want: func(c *Config) {
				c.Class, c.TargetKubeconfig, c.Namespace, c.WatchNamespace = corev1alpha1.PhaseClassHostedCluster, "/etc/target", "hcp-a", "hcp-a"
			},
		},
		"an agent of all namespaces": {
			args: []string{"--target-kubeconfig=/etc/target", "--watch-all-namespaces"},
			want: func(c *Config) {
				c.Class, c.TargetKubeconfig, c.WatchAllNamespaces = corev1alpha1.PhaseClassHostedCluster, "/etc/target", true
			},
		},
		"overrides of images": {
			args: []string{"--registry-host-overrides=quay.io=mirror:5000"},
			env:  map[string]string{"PKO_IMAGE_PREFIX_OVERRIDES": "a/=x/,a/b/=y/", "PKO_PACKAGE_HASH_MODIFIER": "7"},
			want: func(c *Config) {
				c.RegistryHosts = registry.Overrides{{From: "quay.io", To: "mirror:5000"}}
				c.ImagePrefixes = registry.Overrides{{From: "a/b/", To: "y/"}, {From: "a/", To: "x/"}}
				c.PackageHashModifier = 7
			},
		},
		"environment": {
			env: map[string]string{
				"PKO_NAMESPACE": "pko", "PKO_SERVICE_ACCOUNT_NAME": "pko-sa", "LOG_LEVEL": "-1", "LOCKSTEP_CACHE_DIR": "/c", "LOCKSTEP_INSECURE_REGISTRIES": "a:1, b", "LOCKSTEP_REGISTRY_CA_FILE": "ca", "LOCKSTEP_REGISTRY_CAS": "docker.io=hub.pem, a:1=b.pem", "LOCKSTEP_REGISTRY_PROXIES": "a:1=socks5://proxy",
			},
			want: func(c *Config) {
				c.Namespace, c.LogLevel, c.CacheDir, c.RegistryCAFile = "pko", "-1", "/c", "ca"
				c.RegistryCAs = registry.Authorities{"index.docker.io": "hub.pem", "a:1": "b.pem"}
				c.RegistryProxies = registry.Proxies{"a:1": {Scheme: "socks5", Host: "proxy"}}
				c.InsecureRegistries, c.ServiceAccount = []string{"a:1", "b"}, "pko-sa"
			},
		},
		"flags win": {
			args: []string{"--namespace=flag", "--insecure-registry=c", "--log-level=error", "--registry-ca=c=d"},
			env:  map[string]string{"LOCKSTEP_NAMESPACE": "env", "PKO_NAMESPACE": "pko", "LOCKSTEP_INSECURE_REGISTRIES": "a", "LOCKSTEP_REGISTRY_CAS": "a=b", "LOCKSTEP_LOG_LEVEL": "debug"},
			want: func(c *Config) {
				c.Namespace, c.LogLevel, c.InsecureRegistries = "flag", "error", []string{"c"}
				c.RegistryCAs = registry.Authorities{"c": "d"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"LOCKSTEP_NAMESPACE", "PKO_NAMESPACE", "LOCKSTEP_SERVICE_ACCOUNT_NAME", "PKO_SERVICE_ACCOUNT_NAME", "LOG_LEVEL", "LOCKSTEP_LOG_LEVEL", "LOCKSTEP_CACHE_DIR", "LOCKSTEP_INSECURE_REGISTRIES", "LOCKSTEP_REGISTRY_CA_FILE", "LOCKSTEP_REGISTRY_CAS", "LOCKSTEP_REGISTRY_PROXIES", "LOCKSTEP_ALLOW_LOCAL_SOURCES", "LOCKSTEP_ALLOW_PRIVATE_SOURCES", "LOCKSTEP_SHARED_PULL_SECRETS", "LOCKSTEP_REQUIRE_SERVICE_ACCOUNT", "LOCKSTEP_PERMISSION_CEILING", "LOCKSTEP_IMAGE_PREFIX_OVERRIDES", "PKO_IMAGE_PREFIX_OVERRIDES", "LOCKSTEP_REGISTRY_HOST_OVERRIDES", "PKO_REGISTRY_HOST_OVERRIDES", "PKO_PACKAGE_HASH_MODIFIER"} {
				t.Setenv(variable, tc.env[variable])
			}
			want := &Config{
				Namespace: "package-operator-system", ServiceAccount: config.ServiceAccount, LeaderElect: true, MetricsAddress: ":8443", MetricsSecure: true, ProbeAddress: ":8081", PprofAddress: "0", LogLevel: "info",
				InsecureRegistries: []string{}, SharedPullSecrets: "all", RequireServiceAccount: accountsOfNone, Pace: 1,
			}
			tc.want(want)
			got, err := Parse(tc.args)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--namespace=No":                 "--namespace",
		"--log-level=loud":               "not one of debug",
		"--service-account-name=No_Name": "--service-account-name",
		"extra":                          `unexpected argument "extra"`,
		"--unknown":                      "unknown flag",
		"--image-prefix-overrides=a":     "--image-prefix-overrides",
		"--registry-host-overrides=a=b/": "want a host",
		"--registry-ca=ca.pem":           "--registry-ca: ca.pem: want HOST[:PORT]=FILE",
		"--registry-proxy=a=proxy:3128":  "--registry-proxy: a: want a proxy such as http://proxy.example:3128",
		"--shared-pull-secrets=none":     "want all or cluster",
		"--require-service-account=some": "want true, false or all",
		"--permission-ceiling=a/b":       "--permission-ceiling",
		"--pace=2":                       "at most 1",
		"--allow-private-sources=10.1/8": "want a network such as 10.0.0.0/8",
		"--package-hash-modifier=x":      "not a 32-bit number",
		"--self-bootstrap=image":         "-k config",
		"-service-account-namespace=o":   "--namespace",
		"--class=edge":                   "--target-kubeconfig",
		"--watch-namespace=edge":         "is for an agent",
		"--watch-all-namespaces":         "is for an agent",

		"--target-kubeconfig=k --class=default":       "the manager of the cluster runs",
		"--target-kubeconfig=k --class=a/b":           "--class",
		"--target-kubeconfig=k --watch-namespace=a.b": "--watch-namespace",

		"--target-kubeconfig=k --watch-namespace=a --watch-all-namespaces": "choose one of both",
	} {
		if _, err := Parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if _, err := Parse([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// A misspelt value of a variable must not disable a requirement.
func TestParseRefusesMisspeltVariables(t *testing.T) {
	for variable, tc := range map[string]struct{ value, want string }{
		"LOCKSTEP_REQUIRE_SERVICE_ACCOUNT": {"All", "want true, false or all"}, "LOCKSTEP_REQUIRE_VERIFICATION": {"True", "want true or false"},
		"LOCKSTEP_ALLOW_LOCAL_SOURCES": {"True", "want true or false"}, "LOCKSTEP_ALLOW_LOCAL_TARGETS": {"True", "want true or false"},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, tc.value)
			if _, err := Parse(nil); err == nil || err.Error() != fmt.Sprintf("%s %q: %s", variable, tc.value, tc.want) {
				t.Error(err)
			}
		})
	}
}

// The Deployments of config are started with flags that exist.
func TestFlagsOfConfig(t *testing.T) {
	t.Parallel()
	objects, err := config.Objects(config.FolderManager, config.FolderAgent)
	require.NoError(t, err)
	found := 0
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		spec := object.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		var args []string
		for _, arg := range spec["containers"].([]any)[0].(map[string]any)["args"].([]any) {
			args = append(args, strings.ReplaceAll(arg.(string), "$(NAMESPACE)", "n"))
		}
		parsed, err := Parse(args)
		require.NoError(t, err)
		if !parsed.LeaderElect || parsed.Namespace != "n" {
			t.Errorf("%v are read as %+v", args, parsed)
		}
		if object.GetName() == "lockstep-agent" && (!parsed.agent() || parsed.WatchNamespace != "n" || parsed.lease() != corev1alpha1.AgentLeaderElectionLease) {
			t.Errorf("%v are read as %+v", args, parsed)
		}
		found++
	}
	require.Equal(t, 2, found, "config")
}

func TestDeletionPolicyIsThatOfConfig(t *testing.T) {
	t.Parallel()
	if deletionPolicy != config.ForegroundDeletionPolicy {
		t.Errorf("%s here, %s in config", deletionPolicy, config.ForegroundDeletionPolicy)
	}
}

func TestRESTConfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := restConfig(filepath.Join(dir, "absent")); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("a file that does not exist: %v", err)
	}
	path := filepath.Join(dir, "kubeconfig")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	got, err := restConfig(path)
	require.NoError(t, err)
	if got.Host != "https://127.0.0.1:1" || got.QPS != -1 || !strings.HasPrefix(got.UserAgent, "lockstep-manager/") {
		t.Errorf("got %+v", got)
	}
}

// Watches last as long as they can: a timeout of the client would cut them.
func TestClientsHaveNoTimeout(t *testing.T) {
	t.Parallel()
	config := &rest.Config{Host: "https://127.0.0.1:1", QPS: -1}
	c := &Config{Namespace: "n", LeaderElect: true, MetricsAddress: "0", ProbeAddress: "0"}
	_, guarded, err := newManager(c, config, logr.Discard(), func(error) {})
	require.NoError(t, err)
	if config.Timeout != 0 || guarded.Timeout != 0 || guarded.QPS != -1 {
		t.Errorf("timeouts %s and %s, QPS %v", config.Timeout, guarded.Timeout, guarded.QPS)
	}
	if config.WrapTransport != nil || guarded.WrapTransport == nil {
		t.Error("the guard has to be on all clients except the Lease's")
	}
}

// The schema of the chart's values knows every flag except the ones that the chart sets, the
// agents' flags, and --version.
func TestFlagsOfTheChart(t *testing.T) { // not parallel: the usage is written to os.Stderr
	others := []string{
		"kubeconfig", "namespace", "service-account-name", "leader-elect", "health-probe-bind-address", "cache-dir", "version",
		"class", "target-kubeconfig", "watch-namespace", "watch-all-namespaces",
	}
	content, err := os.ReadFile("../../config/chart/values.schema.json")
	require.NoError(t, err)
	var schema struct {
		Properties struct {
			Manager struct {
				Properties struct {
					Flags struct{ Properties map[string]any }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(content, &schema))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = writer
	usage := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(reader)
		usage <- all
	}()
	_, _ = Parse([]string{"--help"})
	os.Stderr = stderr
	require.NoError(t, writer.Close())
	var flags []string
	for _, found := range regexp.MustCompile(`(?m)^ +--([a-z-]+)`).FindAllSubmatch(<-usage, -1) {
		if name := string(found[1]); !slices.Contains(others, name) {
			flags = append(flags, name)
		}
	}
	slices.Sort(flags)
	require.Equal(t, flags, slices.Sorted(maps.Keys(schema.Properties.Manager.Properties.Flags.Properties)), "the flags and the schema of the chart differ")
}
