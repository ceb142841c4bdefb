package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// ports are the loopback TCP ports of one sandbox.
type ports struct {
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
	APIServer  int `json:"apiServer"`
	Registry   int `json:"registry"`
}

// Ports are picked from lowestPort on, portRange of them: below the ephemeral ports
// of Linux (32768) and macOS (49152), from which the kernel takes the near end of
// any connection, also of those that etcd makes to itself before the registry
// listens; and below the node ports of Kubernetes (30000).
const (
	lowestPort = 20000
	portRange  = 10000
)

// freePorts picks ports that nobody listens on. They are all held at once while
// picking, so that they differ; another process can still take one before its
// component does, which the start then notices.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.EtcdClient, &p.EtcdPeer, &p.APIServer, &p.Registry} {
		listener, err := listenSomewhere()
		if err != nil {
			return p, err
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

// listenSomewhere listens on a loopback port that was free.
func listenSomewhere() (net.Listener, error) {
	var failed error
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(portRange)))
		if err == nil {
			return listener, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("finding a free port on 127.0.0.1 from %d to %d: %w", lowestPort, lowestPort+portRange-1, failed)
}
