package cluster

import (
	"fmt"
	"net"
)

// ports are the loopback TCP ports of one sandbox.
type ports struct {
	EtcdClient int `json:"etcdClient"`
	EtcdPeer   int `json:"etcdPeer"`
	APIServer  int `json:"apiServer"`
	Registry   int `json:"registry"`
}

// freePorts picks ports that nobody listens on. They are all held at once while
// picking, so that they differ; another process can still take one before its
// component does, which the start then notices.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.EtcdClient, &p.EtcdPeer, &p.APIServer, &p.Registry} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return p, fmt.Errorf("finding a free port on 127.0.0.1: %w", err)
		}
		defer listener.Close()
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}
