package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// Components of a sandbox, by the names that [WithComponents],
// [Sandbox.StopComponent] and [Sandbox.StartComponent] take.
const (
	Etcd              = "etcd"
	Registry          = "registry"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

type options struct {
	components  []string
	auditPolicy string
	memoryLimit string
}

// Option configures a sandbox.
type Option func(*options)

// WithComponents selects the components; the default is all. The API server needs etcd, and
// all components except etcd and the registry need the API server.
func WithComponents(names ...string) Option { return func(o *options) { o.components = names } }

// WithoutNodes omits nodes, the scheduler and kwok, which only pods need. They take a third of
// the processor time of a starting sandbox.
func WithoutNodes() Option { return WithComponents(Etcd, Registry, APIServer, ControllerManager) }

// WithAuditPolicy sets an audit policy file. The default policy logs every request at level
// Metadata when it ends. The policy must log requests to /version, because [Audit] waits for them.
func WithAuditPolicy(path string) Option { return func(o *options) { o.auditPolicy = path } }

// WithMemoryLimit sets GOMEMLIMIT of each component; the default is 1GiB.
func WithMemoryLimit(limit string) Option { return func(o *options) { o.memoryLimit = limit } }

func newOptions(opts []Option) options {
	o := options{memoryLimit: "1GiB"}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// args are the arguments of the binary for a sandbox called name.
func (o options) args(name string) []string {
	args := []string{"run", "--stop-with-parent", "--announce", "--name", name}
	if len(o.components) > 0 {
		args = append(args, "--components", strings.Join(o.components, ","))
	}
	if o.auditPolicy != "" {
		args = append(args, "--audit-policy", o.auditPolicy)
	}
	if keep, _ := strconv.ParseBool(os.Getenv("LOCKSTEP_SANDBOX_KEEP")); keep {
		args = append(args, "--keep")
	}
	return args
}
