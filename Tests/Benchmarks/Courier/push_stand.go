// Stands in for Apple where time is measured, hands orders to a courier as the gateway does, and asks a gateway much at once.
//
//	push_stand stand CERTIFICATE KEY      prints its two ports: HTTP/2 over TLS, and plain HTTP for the commands below
//	push_stand drive SOCKET TOPIC COUNT   POSTs COUNT orders to a courier's socket over 512 connections; prints outcomes
//	push_stand ask SOCKET                 asks what standard input has, "METHOD TARGET BODY" a line, 64 at once; ends with 1 when
//	                                      an answer is not 200
//
//	GET /set?delay=MS&status=CODE         how every push is answered from now on; status 0 cuts its stream
//	GET /forget                           forgets the arrivals
//	GET /count                            how many arrived
//	GET /arrivals                         "MICROSECONDS PRIORITY ID" a line, in order; the time is that of the machine's clock
//
// It does not check what a push says: push_service.py does.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What the gateway has at the hop at once.
const placeCount = 512

// Connections to a gateway.
const askerCount = 64

type arrival struct {
	microseconds int64
	priority, id string
}

type stand struct {
	mutex    sync.Mutex
	arrivals []arrival
	delay    atomic.Int64
	status   atomic.Int64
}

func (s *stand) push(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	id := r.Header.Get("apns-id")
	s.mutex.Lock()
	s.arrivals = append(s.arrivals, arrival{time.Now().UnixMicro(), r.Header.Get("apns-priority"), id})
	s.mutex.Unlock()
	if delay := s.delay.Load(); delay > 0 {
		time.Sleep(time.Duration(delay) * time.Millisecond)
	}
	switch status := int(s.status.Load()); status {
	case 0:
		panic(http.ErrAbortHandler)
	case 200:
		w.Header().Set("apns-id", id)
		w.WriteHeader(200)
	default:
		w.WriteHeader(status)
		io.WriteString(w, `{"reason":"ServiceUnavailable"}`)
	}
}

func (s *stand) command(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch r.URL.Path {
	case "/set":
		for name, value := range map[string]*atomic.Int64{"delay": &s.delay, "status": &s.status} {
			if number, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64); err == nil {
				value.Store(number)
			}
		}
	case "/forget":
		s.arrivals = nil
	case "/count":
		fmt.Fprintln(w, len(s.arrivals))
	case "/arrivals":
		out := bufio.NewWriter(w)
		for _, a := range s.arrivals {
			fmt.Fprintln(out, a.microseconds, a.priority, a.id)
		}
		out.Flush()
	default:
		w.WriteHeader(404)
	}
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func serve(certificate, key string) {
	s := &stand{}
	s.status.Store(200)
	pushes, commands := listen(), listen()
	fmt.Println(pushes.Addr().(*net.TCPAddr).Port, commands.Addr().(*net.TCPAddr).Port)
	go http.Serve(commands, http.HandlerFunc(s.command))
	server := &http.Server{Handler: http.HandlerFunc(s.push), ErrorLog: log.New(io.Discard, "", 0)}
	log.Fatal(server.ServeTLS(pushes, certificate, key))
}

func drive(socket, topic string, count int64) {
	var next atomic.Int64
	var mutex sync.Mutex
	outcomes := map[string]int{}
	var group sync.WaitGroup
	expires := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	run := time.Now().UnixNano() & 0xFFFFFFFFFFFF
	for place := 0; place < placeCount; place++ {
		group.Add(1)
		go func() {
			defer group.Done()
			asker := asker{socket: socket}
			for number := next.Add(1); number <= count; number = next.Add(1) {
				outcome := asker.post(fmt.Sprintf(
					`{"app":%q,"body":{"aps":{"alert":{"body":"You have received money","title":"Drop"},"mutable-content":1}},`+
						`"channel":"push","destination":"d_1","expires_at":%q,"headers":{"apns-collapse-id":"%032x",`+
						`"apns-expiration":"0","apns-priority":"10","apns-push-type":"alert","apns-topic":%q},`+
						`"message_id":"%08x-0000-4000-8000-%012x","platform":"ios","send_id":"%08x-0000-4000-9000-%012x",`+
						`"token":"%064x"}`, topic, expires, number, topic, number, run, number, run, number))
				mutex.Lock()
				outcomes[outcome]++
				mutex.Unlock()
			}
		}()
	}
	group.Wait()
	fmt.Println(outcomes)
}

func ask(socket string) {
	transport := &http.Transport{MaxIdleConnsPerHost: askerCount, DialContext: func(
		ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	client := &http.Client{Transport: transport}
	lines := make(chan string, askerCount)
	var group sync.WaitGroup
	for asker := 0; asker < askerCount; asker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for line := range lines {
				words := strings.SplitN(line, " ", 3)
				request, err := http.NewRequest(words[0], "http://gate"+words[1], strings.NewReader(words[2]))
				if err != nil {
					log.Fatal(err)
				}
				request.Header.Set("content-type", "application/json")
				answer, err := client.Do(request)
				if err != nil {
					log.Fatal(err)
				}
				body, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				if answer.StatusCode != 200 {
					log.Fatal(words[1], ": ", answer.Status, " ", string(body))
				}
			}
		}()
	}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines <- input.Text()
	}
	close(lines)
	group.Wait()
}

// One connection, made again when the courier has closed it.
type asker struct {
	socket     string
	connection net.Conn
	answers    *bufio.Reader
}

func (p *asker) post(body string) string {
	if p.connection == nil {
		connection, err := net.Dial("unix", p.socket)
		if err != nil {
			return err.Error()
		}
		p.connection, p.answers = connection, bufio.NewReader(connection)
	}
	fmt.Fprintf(p.connection, "POST /v1/deliveries HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"+
		"content-length: %d\r\n\r\n%s", len(body), body)
	answer, err := http.ReadResponse(p.answers, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
	}
	if err != nil || answer.Close {
		p.connection.Close()
		p.connection = nil
	}
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(answer.StatusCode)
}

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "stand":
		serve(os.Args[2], os.Args[3])
	case len(os.Args) == 3 && os.Args[1] == "ask":
		ask(os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "drive":
		count, _ := strconv.ParseInt(os.Args[4], 10, 64)
		drive(os.Args[2], os.Args[3], count)
	default:
		log.Fatal("push_stand stand CERTIFICATE KEY | push_stand drive SOCKET TOPIC COUNT | push_stand ask SOCKET")
	}
}
