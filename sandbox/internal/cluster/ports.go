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

// Ports are picked from a range that starts with lowestPort. It is below the ephemeral ports of
// Linux (32768) and macOS (49152), which the kernel uses for the near end of connections, including
// those that etcd makes to itself before the registry listens. It is also below the node ports of
// Kubernetes (30000).
const (
	lowestPort = 20000
	portRange  = 10000
)

// freePorts picks free ports. It holds all of them while it picks, so that they differ. Another
// process can still take one before the component does, which the start notices.
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
