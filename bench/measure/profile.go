package measure

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/discovery"
)

// profileStart is how long a profile may take to begin.
const profileStart = 200 * time.Millisecond

// profile begins profiles of the manager's and the API server's processor time, where one
// was asked for, and returns a function that waits for their end and writes them beside
// the allocations. Their length has to be said beforehand: they go on over the silence
// after the scenario, in which nothing is sampled.
func (c *Cluster) profile(scenario string) (end func() []ProfileShare) {
	c.tb.Helper()
	if c.o.Profile == "" {
		return func() []ProfileShare { return nil }
	}
	must(c.tb, os.MkdirAll(c.o.Profile, 0o755))
	path := func(kind string) string { return c.profileOf(scenario, kind+".pprof") }
	must(c.tb, c.fetchProfile("allocs", path("allocs-before")))
	seconds := 5 + c.Total()/200
	done := make(chan error, 2)
	go func() { done <- c.fetchProfile(fmt.Sprintf("profile?seconds=%d", seconds), path("cpu")) }()
	go func() { done <- c.fetchServerProfile(seconds, path("apiserver-cpu")) }()
	time.Sleep(profileStart)
	return func() []ProfileShare {
		c.tb.Helper()
		must(c.tb, c.fetchProfile("allocs", path("allocs")))
		must(c.tb, errors.Join(<-done, <-done))
		shares, err := profileShares(c.tb.Context(), path("cpu"))
		must(c.tb, err)
		return shares
	}
}

// profileOf names a file for a profile of a scenario.
func (c *Cluster) profileOf(scenario, kind string) string {
	return filepath.Join(c.o.Profile, fmt.Sprintf("%s-%dx%d.%s", scenario, c.Packages, c.Workload.Objects, kind))
}

// heap writes what the manager holds after a scenario: a profile, and as text the
// statistics of the Go runtime, which divide the memory into used objects, gaps and
// garbage. Memory has been read before, as it was without a collection.
func (c *Cluster) heap(scenario string) {
	c.tb.Helper()
	if c.o.Profile == "" || c.manager.Exited() {
		return
	}
	must(c.tb, os.MkdirAll(c.o.Profile, 0o755))
	must(c.tb, c.fetchProfile("heap?debug=1", c.profileOf(scenario, "memory.txt")))
	must(c.tb, c.fetchProfile("heap?gc=1", c.profileOf(scenario, "heap.pprof")))
}

// trace writes what the manager asked for in a scenario, with the milliseconds
// from its beginning to the arrival and to the end of each request, beside the
// profiles.
func (c *Cluster) trace(scenario string, m Measurement) {
	c.tb.Helper()
	if c.o.Profile == "" {
		return
	}
	must(c.tb, os.MkdirAll(c.o.Profile, 0o755))
	file, err := os.Create(c.profileOf(scenario, "requests.txt"))
	must(c.tb, err)
	defer file.Close()
	w := bufio.NewWriter(file)
	for _, e := range m.Entries {
		if byManager(e) {
			fmt.Fprintf(w, "%10.1f %10.1f %4d %-6s %s\n", e.Received.Sub(m.began).Seconds()*1000, e.Done.Sub(m.began).Seconds()*1000, e.Code, e.Verb, e.RequestURI)
		}
	}
	must(c.tb, w.Flush())
}

// fetchServerProfile writes a profile of the API server's processor time.
func (c *Cluster) fetchServerProfile(seconds int, path string) error {
	config := c.ownConnection()
	config.Timeout = time.Duration(seconds+60) * time.Second // the client's own is half a minute
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	request := client.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(seconds))
	raw, err := request.DoRaw(c.tb.Context())
	if err != nil {
		return fmt.Errorf("profile the API server: %w", err)
	}
	return os.WriteFile(path, raw, 0o644)
}

// fetchProfile writes one of the manager's profiles to a file.
func (c *Cluster) fetchProfile(what, path string) error {
	req, err := http.NewRequestWithContext(c.tb.Context(), http.MethodGet, "http://"+c.pprof+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s: the manager answers %s", what, resp.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, resp.Body)
	return err
}
