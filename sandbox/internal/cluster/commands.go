package cluster

import (
	"fmt"
	"strings"

	"lockstep.run/lockstep/sandbox/internal/program"
)

// serviceCIDR is the range of cluster IPs. They are not routed.
const serviceCIDR = "10.96.0.0/16"

// launch has the input of all components' command lines.
type launch struct {
	layout
	ports ports
	token string // random; the name of the etcd member
}

func (l launch) etcdURL() string      { return fmt.Sprintf("http://127.0.0.1:%d", l.ports.EtcdClient) }
func (l launch) serverURL() string    { return fmt.Sprintf("https://127.0.0.1:%d", l.ports.APIServer) }
func (l launch) registryHost() string { return fmt.Sprintf("127.0.0.1:%d", l.ports.Registry) }

// args returns the arguments of a component.
func (l launch) args(component string) []string {
	switch component {
	case program.Etcd:
		return l.etcd()
	case program.APIServer:
		return l.apiServer()
	case program.ControllerManager:
		return l.controllerManager()
	case program.Scheduler:
		return []string{"--config=" + l.schedConfig(), "--secure-port=0"}
	case program.Kwok:
		return []string{"--config=" + l.kwokConfig(), "--kubeconfig=" + l.kubeconfig("kwok")}
	case program.Registry:
		return []string{"--listen=" + l.registryHost(), "--data=" + l.registryData()}
	}

	panic("no command line for component " + component)
}

func (l launch) etcd() []string {
	peer := fmt.Sprintf("http://127.0.0.1:%d", l.ports.EtcdPeer)
	return []string{
		"--name=" + l.token,
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + l.etcdURL(),
		"--advertise-client-urls=" + l.etcdURL(),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + l.token + "=" + peer,
		"--initial-cluster-token=" + l.token,
		"--unsafe-no-fsync", // the data is temporary
		"--quota-backend-bytes=8589934592",
		"--max-request-bytes=10485760",
		"--log-level=warn",
	}
}

func (l launch) apiServer() []string {
	return []string{
		"--etcd-servers=" + l.etcdURL(),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", l.ports.APIServer),
		// A loopback address cannot be an endpoint of the Service "kubernetes".
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + l.servingCert(),
		"--tls-private-key-file=" + l.servingKey(),
		"--client-ca-file=" + l.caFile(),
		"--service-account-key-file=" + l.tokenPublicKey(),
		"--service-account-signing-key-file=" + l.tokenKey(),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		// The defaults (400 and 200) would be the seats of a whole cluster of nodes. Here, 16
		// clients that work in parallel must not queue.
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		"--audit-policy-file=" + l.auditPolicy(),
		"--audit-log-path=" + l.auditLog(),
		"--audit-log-format=json",
		// Blocking: an entry is in the file before its request ends.
		"--audit-log-mode=blocking",
		// In megabytes. The log must never rotate, because readers would lose entries.
		"--audit-log-maxsize=1048576",
	}
}

func (l launch) controllerManager() []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(program.ControllerManager),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + l.tokenKey(),
		"--root-ca-file=" + l.caFile(),
		"--cluster-signing-cert-file=" + l.caFile(),
		"--cluster-signing-key-file=" + l.caKeyFile(),
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
	}
}

// defaultAuditPolicy logs each request once, at its end, and a watch also at the start of its
// response.
const defaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

func (l launch) schedulerConfig() string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 2000
  burst: 4000
leaderElection:
  leaderElect: false
`, l.kubeconfig(program.Scheduler))
}

// kwokConfiguration joins kwok's options with the stages that make nodes and pods
// ready.
func kwokConfiguration(stages ...string) string {
	const options = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  manageAllNodes: true
  cidr: 10.0.0.1/16
  nodeIP: 10.0.0.1
  nodeLeaseDurationSeconds: 40
  nodeLeaseParallelism: 4
  nodePlayStageParallelism: 4
  podPlayStageParallelism: 16
  podsOnNodeSyncParallelism: 4
  enablePodsOnNodeSyncListPager: false
  enablePodsOnNodeSyncStreamWatch: true
`

	return strings.Join(append([]string{options}, stages...), "\n---\n")
}
