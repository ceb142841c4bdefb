package targets

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"lockstep.run/lockstep/internal/cluster/livestate"
	"lockstep.run/lockstep/internal/inputs/sources"
	"lockstep.run/lockstep/internal/limits"
)

const kubeconfigPoll = 5 * time.Second // interval of reading an agent's kubeconfig file; volumes of Secrets change within a minute

// File is a kubeconfig in a file. It belongs to the administrator, so it can name further files
// with certificates, a key and a token. All of them are followed.
type File struct {
	Path string
	// Every is the interval of reading the files; 0 means kubeconfigPoll.
	Every time.Duration
}

// fileKey is the key of the content.
const fileKey = "value"

// Ref names the target.
func (f *File) Ref() Ref { return Ref{Name: f.Path, Key: fileKey} }

// Get is sources.Get for the file. It embeds the files that the kubeconfig names, except the
// token's file, which client-go follows itself.
func (f *File) Get(context.Context, sources.Ref) (*sources.Object, error) {
	data, err := f.read()
	if err != nil || data == nil {
		return nil, err
	}
	return &sources.Object{Data: map[string][]byte{fileKey: data}}, nil
}

// Listen is sources.Listen for the file.
func (f *File) Listen(ctx context.Context, _ livestate.Selection, l livestate.Listener) {
	ticker := time.NewTicker(cmp.Or(f.Every, kubeconfigPoll))
	defer ticker.Stop()
	last := ""
	for {
		if version := f.version(); version != last {
			last = version
			l.Listed(objectsOf(version))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// absent is the version of a file that does not exist.
const absent = "absent"

func objectsOf(version string) []metav1.Object {
	if version == absent {
		return nil
	}
	return []metav1.Object{&metav1.ObjectMeta{ResourceVersion: version}}
}

func (f *File) version() string {
	data, err := f.read()
	switch {
	case err != nil:
		data = []byte(err.Error())
	case data == nil:
		return absent
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// read returns nil if the file does not exist. The error is a *RefusedError if the kubeconfig names
// another file that cannot be read.
func (f *File) read() ([]byte, error) {
	data, err := readBounded(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}

	all, cluster, user, err := decode(data)
	if err != nil {
		return data, nil // Parse reports the problem
	}

	cluster.LocationOfOrigin, user.LocationOfOrigin = f.Path, f.Path
	if err := errors.Join(clientcmdapi.MinifyConfig(all), clientcmd.ResolveLocalPaths(all)); err != nil {
		return nil, refuse("", "names a file by a path that cannot be resolved", "give absolute paths")
	}
	for _, named := range []struct {
		field string
		path  *string
		data  *[]byte
	}{
		{"cluster.certificate-authority", &cluster.CertificateAuthority, &cluster.CertificateAuthorityData},
		{"user.client-certificate", &user.ClientCertificate, &user.ClientCertificateData},
		{"user.client-key", &user.ClientKey, &user.ClientKeyData},
	} {
		if *named.path == "" {
			continue
		}
		if *named.data, err = readBounded(*named.path); err != nil {
			return nil, refuse(named.field, "names a file that cannot be read", "mount it, and let the agent read it")
		}
		if len(*named.data) > limits.KubeconfigBytes {
			return nil, refuse(named.field, fmt.Sprintf("names a file of more than %d bytes", limits.KubeconfigBytes), "keep only the entries that this cluster needs")
		}
		*named.path = ""
	}

	return clientcmd.Write(*all)
}

// Parse parses the result of Get.
func (f *File) Parse(data []byte) (*rest.Config, error) { return parse(data, true) }

// readBounded reads a file. It reads one byte more than the limit, so that the caller notices a
// larger file.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var content bytes.Buffer
	_, err = io.Copy(&content, io.LimitReader(file, limits.KubeconfigBytes+1))
	return content.Bytes(), err
}
