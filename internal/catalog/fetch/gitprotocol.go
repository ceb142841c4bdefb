package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"lockstep.run/lockstep/internal/kube/outbound"
	"lockstep.run/lockstep/internal/limits"
)

// gitSession speaks the protocol of git-upload-pack: version 2 if the server supports it, otherwise
// version 0 (https://git-scm.com/docs/protocol-v2, https://git-scm.com/docs/gitprotocol-pack).
type gitSession struct {
	server gitServer
	// v2 is set for version 2. advertised are the references in version 0.
	v2         bool
	advertised map[string]string
	// capabilities are the server's, by name, with their values.
	capabilities map[string]string
}

// The kinds of packets.
const (
	packetData = iota
	packetFlush
	packetDelimiter
	packetEnd
)

// packets reads packets, which have their length in four hex digits before their data.
type packets struct{ r *bufio.Reader }

// newPackets returns a reader with a buffer of the largest packet.
func newPackets(r io.Reader) *packets { return &packets{bufio.NewReaderSize(r, 64<<10)} }

// next reads one packet. An error packet of the server becomes its error.
func (p *packets) next() (data []byte, kind int, err error) {
	var head [4]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return nil, packetEnd, err
	}

	length, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil || length == 3:
		return nil, packetEnd, gitDamaged("%.20q is not a packet length", head)
	case length < 4:
		return nil, []int{packetFlush, packetDelimiter, packetEnd}[length], nil
	}

	data = make([]byte, length-4)
	if _, err := io.ReadFull(p.r, data); err != nil {
		return nil, packetEnd, err
	}
	if message, ok := bytes.CutPrefix(data, []byte("ERR ")); ok {
		return nil, packetEnd, remoteError(message)
	}

	return data, packetData, nil
}

// line reads a packet of text.
func (p *packets) line() (text string, kind int, err error) {
	data, kind, err := p.next()
	return strings.TrimSuffix(string(data), "\n"), kind, err
}

// remoteError wraps a message of the server itself.
func remoteError(message []byte) *Error {
	return permanent("Check the URL, git.ref and the credentials.", "the server reports: %s", outbound.Redact(strings.TrimSpace(string(message))))
}

// packet returns a packet of text to send.
func packet(format string, args ...any) string {
	text := fmt.Sprintf(format, args...) + "\n"
	return fmt.Sprintf("%04x%s", len(text)+4, text)
}

// beginGit reads the server's advertisement.
func beginGit(ctx context.Context, server gitServer) (*gitSession, error) {
	body, err := server.advertise(withBodyLimit(ctx, limits.GitRefsBytes))
	if err != nil {
		return nil, err
	}

	defer func() { _ = body.Close() }()
	g := &gitSession{server: server, capabilities: map[string]string{}, advertised: map[string]string{}}
	p := newPackets(body)
	line, kind, err := p.line()
	// Over HTTP, the announcement of the service precedes the advertisement.
	if err == nil && strings.HasPrefix(line, "# service=") {
		if _, _, err = p.next(); err == nil {
			line, kind, err = p.line()
		}
	}

	if g.v2 = line == "version 2"; g.v2 || line == "version 1" {
		line, kind, err = p.line()
	}

	for ; err == nil && kind == packetData; line, kind, err = p.line() {
		if g.v2 {
			g.capability(line)
		} else if err := g.reference(line); err != nil {
			return nil, err
		}
	}

	if err != nil {
		return nil, err
	}
	if format := g.capabilities["object-format"]; format != "" && format != "sha1" {
		return nil, permanent("Use a repository with SHA-1.", "the repository has objects with %.20s", format)
	}

	return g, nil
}

// capability keeps a capability with its value, which can be empty.
func (g *gitSession) capability(text string) {
	name, value, _ := strings.Cut(text, "=")
	g.capabilities[name] = value
}

// reference parses a line of version 0. The first one has the capabilities.
func (g *gitSession) reference(line string) error {
	line, capabilities, _ := strings.Cut(line, "\x00")
	for _, c := range strings.Fields(capabilities) {
		g.capability(c)
	}

	commit, name, ok := strings.Cut(line, " ")
	switch {
	case commit == "shallow" || name == "capabilities^{}":
		return nil
	case !ok || !isCommit(commit) || strings.Contains(name, " "):
		return gitDamaged("%.100q is not a reference", line)
	case len(g.advertised) > limits.GitRefs:
		return permanent("", "the repository has more than %d references, the limit", limits.GitRefs)
	}
	g.advertised[strings.TrimSuffix(name, "^{}")] = commit // the commit of a tag comes after the tag
	return nil
}

// refs returns the commits of references that start with one of the prefixes.
func (g *gitSession) refs(ctx context.Context, prefixes []string) (map[string]string, error) {
	if !g.v2 {
		return g.advertised, nil
	}

	var m strings.Builder
	m.WriteString(packet("command=ls-refs") + "0001" + packet("peel"))
	for _, prefix := range prefixes {
		m.WriteString(packet("ref-prefix %s", prefix))
	}

	m.WriteString("0000")
	body, err := g.server.request(withBodyLimit(ctx, limits.GitRefsBytes), []byte(m.String()))
	if err != nil {
		return nil, err
	}

	defer func() { _ = body.Close() }()
	refs := map[string]string{}
	p := newPackets(body)
	for {
		line, kind, err := p.line()
		if err != nil || kind != packetData {
			return refs, err
		}
		fields := strings.Split(line, " ")
		if fields[0] == "unborn" {
			continue
		}
		if len(fields) < 2 || !isCommit(fields[0]) {
			return nil, gitDamaged("%.100q is not a reference", line)
		}
		refs[fields[1]] = fields[0]
		for _, attribute := range fields[2:] {
			if peeled, ok := strings.CutPrefix(attribute, "peeled:"); ok && isCommit(peeled) {
				refs[fields[1]] = peeled
			}
		}
		if len(refs) > limits.GitRefs {
			return nil, permanent("", "the repository has more than %d references, the limit", limits.GitRefs)
		}
	}
}

// fetch writes the pack with one commit and its files.
func (g *gitSession) fetch(ctx context.Context, commit string, pack io.Writer) error {
	message := g.fetchV0(commit)
	if g.v2 {
		message = g.fetchV2(commit)
	}

	body, err := g.server.request(withBodyLimit(ctx, 2*limits.GitBytes), []byte(message))
	if err != nil {
		return err
	}

	defer func() { _ = body.Close() }()
	p := newPackets(body)
	if g.v2 {
		err = p.skipTo("packfile", packetFlush)
	} else {
		// The shallow commits precede the packet that there is nothing in common.
		err = p.skipTo("NAK", packetDelimiter)
	}

	if err != nil {
		return err
	}
	if _, sideband := g.capabilities["side-band-64k"]; !g.v2 && !sideband {
		return copyPack(pack, p.r)
	}

	return copyPack(pack, &sideband{packets: p})
}

// fetchV2 requests one commit without history. If the server can filter, files beyond the limit are
// not sent.
func (g *gitSession) fetchV2(commit string) string {
	m := packet("command=fetch") + "0001" + packet("no-progress") + packet("ofs-delta") + packet("want %s", commit) + packet("deepen 1")
	if slices.Contains(strings.Fields(g.capabilities["fetch"]), "filter") {
		m += packet("filter blob:limit=%d", limits.FileBytes+1)
	}
	return m + packet("done") + "0000"
}

// fetchV0 requests one commit with the capabilities that the server has. A server without shallow
// sends its whole history, up to the limit.
func (g *gitSession) fetchV0(commit string) string {
	want := "want " + commit
	for _, c := range []string{"ofs-delta", "side-band-64k", "no-progress"} {
		if _, ok := g.capabilities[c]; ok {
			want += " " + c
		}
	}
	m := packet("%s", want)
	if _, ok := g.capabilities["shallow"]; ok {
		m += packet("deepen 1")
	}
	return m + "0000" + packet("done")
}

// skipTo reads up to a line. A packet of the kind end means that the line is missing.
func (p *packets) skipTo(wanted string, end int) error {
	for {
		line, kind, err := p.line()
		switch {
		case err != nil:
			return err
		case kind == packetData && line == wanted:
			return nil
		case kind == end || kind == packetEnd:
			return gitDamaged("it has no pack")
		}
	}
}

// sideband is the data of a stream that is interleaved with messages.
type sideband struct {
	*packets
	rest []byte
}

// Read implements io.Reader.
func (s *sideband) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		data, kind, err := s.next()
		switch {
		case err != nil:
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // the pack is not complete
			}
			return 0, err
		case kind != packetData:
			return 0, io.EOF
		case len(data) == 0:
		case data[0] == 1:
			s.rest = data[1:]
		case data[0] == 3:
			return 0, remoteError(data[1:])
		}
	}

	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// copyPack copies the pack up to the limit. Its checksum is verified when it is read.
func copyPack(w io.Writer, r io.Reader) error {
	n, err := io.Copy(w, io.LimitReader(r, limits.GitBytes+1))
	if err == nil && n > limits.GitBytes {
		return gitLimit(limits.GitBytes)
	}
	return err
}
