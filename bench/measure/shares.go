package measure

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// ProfileShare is what one kind of work takes of the manager's processor time.
type ProfileShare struct {
	Work  string  `json:"work"`
	Share float64 `json:"share"`
}

// kindsOfWork are told apart by a function that is somewhere on the stack; the
// first that fits counts.
var kindsOfWork = []struct {
	name      string
	functions []string
}{
	{"collect garbage", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"load the package: pull, parse, render", []string{"lockstep/internal/loader", "go-containerregistry"}},
	{"read schemas, check types", []string{"lockstep/internal/cluster/schemas"}},
	{"follow watches: decode events, keep records, probe", []string{"lockstep/internal/cluster/livestate", "lockstep/internal/cluster/reflector", "lockstep/internal/engine.(*Tracker)", "client-go/tools/cache", "apimachinery/pkg/watch"}},
	{"encrypt, frame and send (TLS, HTTP/2)", []string{"crypto/tls", "golang.org/x/net/http2", "net/http.", "crypto/internal"}},
	{"decode answers", []string{"json.Unmarshal", "json.UnmarshalCaseSensitivePreserveInts", "UnmarshalJSON", "Serializer).Decode"}},
	{"encode requests", []string{"json.Marshal", "json.(*Encoder)", "MarshalJSON", "Serializer).Encode"}},
	{"decide: phases, drift, statuses", []string{"lockstep/internal/"}},
	{"the client library", []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}},
}

const otherWork = "schedule goroutines, wait for the network"

// profileShares reads a profile of processor time with the Go tool.
func profileShares(ctx context.Context, path string) ([]ProfileShare, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", path).Output()
	if err != nil {
		return nil, fmt.Errorf("read the profile %s: %w", path, err)
	}
	return sharesOf(string(out))
}

// sharesOf adds up the stacks of pprof's -traces: blocks between rulers, each of a
// time and the functions from the innermost to the outermost.
func sharesOf(traces string) ([]ProfileShare, error) {
	times := map[string]time.Duration{}
	var total time.Duration
	_, blocks, _ := strings.Cut(traces, "-----------+")
	for block := range strings.SplitSeq(blocks, "-----------+") {
		_, stack, _ := strings.Cut(block, "\n")
		words := strings.Fields(stack)
		if len(words) < 2 {
			continue
		}
		took, err := time.ParseDuration(words[0])
		if err != nil {
			return nil, fmt.Errorf("no time in a stack of the profile: %w", err)
		}
		total += took
		times[workOf(stack)] += took
	}
	var shares []ProfileShare
	for name, took := range times {
		shares = append(shares, ProfileShare{Work: name, Share: took.Seconds() / total.Seconds()})
	}
	slices.SortFunc(shares, func(a, b ProfileShare) int {
		if a.Share != b.Share {
			if a.Share > b.Share {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Work, b.Work)
	})
	return shares, nil
}

func workOf(stack string) string {
	for _, kind := range kindsOfWork {
		if slices.ContainsFunc(kind.functions, func(f string) bool { return strings.Contains(stack, f) }) {
			return kind.name
		}
	}
	return otherWork
}
