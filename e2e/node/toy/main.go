// Command toy is the only workload of the tests in the folder above. Its arguments decide when
// it becomes ready, how it ends, and its dependencies.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

func main() {
	name, args := os.Args[1], os.Args[2:]
	map[string]func([]string){
		"serve": serve, "load": load, "kill": kill, "controller": controller, "webhook": webhook, "leave": leave,
	}[name](args)
}

// serve is a server, or a job if it ends by itself.
func serve(args []string) {
	f := flag.NewFlagSet("serve", flag.ExitOnError)
	addr := f.String("addr", ":8080", "")
	readyAfter := f.Duration("ready-after", 0, "")
	exitAfter := f.Duration("exit-after", 0, "zero: not by itself")
	code := f.Int("code", 0, "of the exit")
	message := f.String("message", "", "printed before the exit")
	termDelay := f.Duration("term-delay", 0, "between SIGTERM and the end")
	alloc := f.Int("alloc", 0, "MiB to take")
	check(f.Parse(args))
	began := time.Now()
	http.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if time.Since(began) < *readyAfter {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, os.Getenv("VERSION")) })
	go listen(*addr)
	taken := bytes.Repeat([]byte{1}, *alloc<<20)
	if *exitAfter > 0 {
		time.Sleep(*exitAfter)
		fmt.Println(*message)
		os.Exit(*code)
	}
	terminated()
	time.Sleep(*termDelay)
	log.Println("ended, with", len(taken), "bytes")
}

func listen(addr string) { log.Fatal(http.ListenAndServe(addr, nil)) }

func terminated() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// load requests a URL ten times a second, each time with a new connection, and prints failures.
func load(args []string) {
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	versions := map[string]int{}
	for n := 1; ; n++ {
		time.Sleep(100 * time.Millisecond)
		resp, err := c.Get(args[0])
		if err != nil {
			fmt.Println("FAILED", err)
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		resp.Body.Close()
		if versions[string(bytes.TrimSpace(body))]++; resp.StatusCode != http.StatusOK {
			fmt.Println("FAILED", resp.Status)
		}
		if n%10 == 0 {
			fmt.Println("answers", versions)
		}
	}
}

// kill ends the processes of a pod as a crash does. It can, because it shares their PID namespace
// and user.
func kill(args []string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	killed := 0
	for _, file := range environs {
		environ, _ := os.ReadFile(file)
		if !slices.Contains(strings.Split(string(environ), "\x00"), "HOSTNAME="+args[0]) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		check(err)
		check(syscall.Kill(pid, syscall.SIGKILL))
		killed++
	}
	fmt.Println("killed", killed)
}

func cluster() client.Client {
	c, err := client.New(config.GetConfigOrDie(), client.Options{})
	check(err)
	return c
}

const finalizer = "node.lockstep.example/cleanup"

// controller makes widgets ready and cleans up after them. Both take some time.
func controller(args []string) {
	work, err := time.ParseDuration(args[0])
	check(err)
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	go listen(":8080")
	c, ctx := cluster(), context.Background()
	for ; ; time.Sleep(500 * time.Millisecond) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "node.lockstep.example/v1", "kind": "WidgetList"}}
		if err := c.List(ctx, list); err != nil {
			log.Println(err)
		}
		for i := range list.Items {
			w := &list.Items[i]
			_, made, _ := unstructured.NestedMap(w.Object, "status")
			var err error
			switch deleted := w.GetDeletionTimestamp(); {
			case deleted != nil && time.Since(deleted.Time) >= work:
				w.SetFinalizers(nil)
				err = c.Update(ctx, w)
			case deleted == nil && len(w.GetFinalizers()) == 0:
				w.SetFinalizers([]string{finalizer})
				err = c.Update(ctx, w)
			case deleted == nil && !made && time.Since(w.GetCreationTimestamp().Time) >= work:
				w.Object["status"] = map[string]any{"observedGeneration": w.GetGeneration(), "conditions": []any{map[string]any{
					"type": "Ready", "status": "True", "reason": "Made", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
				}}}
				err = c.Status().Update(ctx, w)
			}
			if err != nil {
				log.Println(err)
			}
		}
	}
}

// webhook admits ConfigMaps that declare themselves valid.
func webhook([]string) {
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/validate", func(w http.ResponseWriter, r *http.Request) {
		review, object := admissionv1.AdmissionReview{}, corev1.ConfigMap{}
		_ = json.NewDecoder(r.Body).Decode(&review)
		_ = json.Unmarshal(review.Request.Object.Raw, &object)
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: review.Request.Operation == admissionv1.Delete || object.Data["valid"] == "yes",
			Result: &metav1.Status{Message: "data.valid has to be yes"},
		}
		_ = json.NewEncoder(w).Encode(review)
	})
	time.Sleep(3 * time.Second)
	log.Fatal(http.ListenAndServeTLS(":8443", "/certs/tls.crt", "/certs/tls.key", nil))
}

// leave still needs its rights and an object of its package some seconds after SIGTERM. It records
// whether it had them.
func leave(args []string) {
	c, ctx, key := cluster(), context.Background(), client.ObjectKey{Namespace: args[0], Name: "record"}
	http.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) {})
	go listen(":8080")
	terminated()
	time.Sleep(3 * time.Second)
	check(c.Get(ctx, key, &corev1.ConfigMap{}))
	check(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: args[0], Name: "left"}}))
}
