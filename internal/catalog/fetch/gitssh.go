package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

// gitSSH is git-upload-pack on an ssh server.
type gitSSH struct {
	conn    *ssh.Client
	session *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *head
	host    string
	release func() bool
}

// dialSSH connects and starts git-upload-pack. The address is checked like the addresses of web
// servers.
func (f *Fetcher) dialSSH(ctx context.Context, u *url.URL, secret credentials, namespace string) (gitServer, error) {
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "22")
	}

	config, err := sshConfig(u, address, secret)
	if err != nil {
		return nil, err
	}

	conn, err := f.dialer(namespace != "").Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}

	// Neither the handshake nor the session takes a context, so its end closes the connection.
	release := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(limits.ResponseHeaderTimeout))
	c, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		release()
		_ = conn.Close()
		return nil, sshError(u.Hostname(), err)
	}

	_ = conn.SetDeadline(time.Time{})
	g := &gitSSH{conn: ssh.NewClient(c, channels, requests), host: u.Hostname(), release: release, stderr: &head{}}
	if err := g.start(u.Path); err != nil {
		g.close()
		return nil, err
	}

	return g, nil
}

// start runs the command. The path is quoted, because the server passes the command to a shell.
func (g *gitSSH) start(path string) (err error) {
	if g.session, err = g.conn.NewSession(); err != nil {
		return err
	}
	if g.stdin, err = g.session.StdinPipe(); err != nil {
		return err
	}
	if g.stdout, err = g.session.StdoutPipe(); err != nil {
		return err
	}
	g.session.Stderr = g.stderr
	_ = g.session.Setenv("GIT_PROTOCOL", "version=2") // servers that refuse it speak version 0
	return g.session.Start(gitService + " '" + strings.ReplaceAll(path, "'", `'\''`) + "'")
}

func (g *gitSSH) close() {
	g.release()
	_ = g.conn.Close()
}

func (g *gitSSH) advertise(ctx context.Context) (io.ReadCloser, error) { return g.answer(ctx), nil }

func (g *gitSSH) request(ctx context.Context, message []byte) (io.ReadCloser, error) {
	if _, err := g.stdin.Write(message); err != nil {
		return nil, err
	}
	return g.answer(ctx), nil
}

// answer reads from the session up to the end of the answer by the protocol, and not beyond.
func (g *gitSSH) answer(ctx context.Context) io.ReadCloser {
	bounds := boundsOf(ctx, g.host)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			_ = g.conn.Close()
		}
	})
	return outbound.NewBody(ctx, cancel, &sshAnswer{g, stop}, bounds)
}

// sshAnswer is the output of the session up to the end of one answer.
type sshAnswer struct {
	*gitSSH
	stop func() bool
}

// Read implements io.Reader. If the session ended at once, its own output explains why.
func (a *sshAnswer) Read(b []byte) (int, error) {
	n, err := a.stdout.Read(b)
	if n == 0 && errors.Is(err, io.EOF) {
		_ = a.session.Wait() // for the rest of its output
		if text := a.stderr.text(); text != "" {
			return 0, remoteError([]byte(text))
		}
	}
	return n, err
}

// Close implements io.Closer.
func (a *sshAnswer) Close() error {
	a.stop()
	return nil
}

// head keeps the first bytes written to it.
type head struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b.Write(p[:min(len(p), max(0, limits.RegistryErrorBytes-h.b.Len()))])
	return len(p), nil
}

// text returns the kept bytes.
func (h *head) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(h.b.String())
}

// sshConfig has the user of the URL, and the key and the known hosts of the Secret.
func sshConfig(u *url.URL, address string, secret credentials) (*ssh.ClientConfig, error) {
	key, known := secret.data["ssh-privatekey"], secret.data["known_hosts"]
	switch {
	case len(key) == 0:
		return nil, permanent("Name a Secret with ssh-privatekey and known_hosts.", "git.secretRef: there is no ssh-privatekey for %s", u.Hostname())
	case len(known) == 0:
		return nil, permanent("Add what \"ssh-keyscan "+u.Hostname()+"\" prints, after comparing it with what the server's owner publishes.",
			"git.secretRef: the Secret %q has no known_hosts, so that %s cannot be verified", secret.name, u.Hostname())
	}

	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, permanent("Use a key without a passphrase, as ssh-keygen writes it.", "git.secretRef: the ssh-privatekey of the Secret %q cannot be read", secret.name)
	}

	db, err := knownHosts(known)
	if err != nil {
		return nil, permanent("Write lines as ssh-keyscan prints them.", "git.secretRef: the known_hosts of the Secret %q cannot be read", secret.name)
	}

	return &ssh.ClientConfig{
		User: cmp.Or(u.User.Username(), "git"), Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: db.HostKeyCallback(), HostKeyAlgorithms: db.HostKeyAlgorithms(address),
		ClientVersion: "SSH-2.0-lockstep",
	}, nil
}

// knownHosts parses lines through a file, because the library requires one.
func knownHosts(lines []byte) (*knownhosts.HostKeyDB, error) {
	file, err := os.CreateTemp("", "fetch-")
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	if _, err := file.Write(lines); err != nil {
		return nil, err
	}
	return knownhosts.NewDB(file.Name())
}

// sshError explains why no session was started.
func sshError(host string, err error) error {
	const verify = "If that is right, replace its lines in known_hosts."
	switch {
	case knownhosts.IsHostKeyChanged(err):
		return permanent(verify, "the host key of %s is another than the one in known_hosts", host)
	case knownhosts.IsHostUnknown(err):
		return permanent("Add its lines to known_hosts.", "the host key of %s is not in known_hosts", host)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return permanent("Check the ssh-privatekey, and that the server has its public key.", "%s does not accept the key", host)
	}
	return err
}
