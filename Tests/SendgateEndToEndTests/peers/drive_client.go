// Sends through the handbook's Go client; see check_clients.py, which builds it beside the client's file.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

type order struct {
	Socket            string
	Timeout, Deadline float64
	AtOnce            int `json:"at_once"`
	Sends             []Send
}

func seconds(count float64) time.Duration { return time.Duration(count * float64(time.Second)) }

func listed(texts []string) []string { return append([]string{}, texts...) }

func ask(client *SendgateClient, send Send) any {
	answer, err := client.Send(context.Background(), send)
	var failure *SendgateError
	if errors.As(err, &failure) {
		for _, kind := range []Kind{Refused, Busy, Unreachable, Unanswered, UnreadableAnswer} {
			if errors.Is(err, kind) {
				return map[string]any{
					"error": kind, "status": failure.Status, "violations": listed(failure.Violations),
					"retry_after": failure.RetryAfter.Seconds(), "text": failure.Error(),
				}
			}
		}
	}
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"id": answer.ID, "send_id": answer.SendID, "outcome": answer.Outcome, "reason": answer.Reason, "detail": answer.Detail,
		"who_can_fix": answer.WhoCanFix, "violations": listed(answer.Violations), "is_promised": answer.IsPromised,
		"is_replayed": answer.IsReplayed, "text": answer.String(), "document": answer.Document,
	}
}

func main() {
	clients := map[string]*SendgateClient{}
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 16<<20)
	for input.Scan() {
		var ordered order
		if err := json.Unmarshal(input.Bytes(), &ordered); err != nil {
			panic(err)
		}
		key, _ := json.Marshal([]any{ordered.Socket, ordered.Timeout, ordered.Deadline})
		client := clients[string(key)]
		if client == nil {
			client = NewSendgateClient(ordered.Socket)
			client.Timeout, client.Deadline = seconds(ordered.Timeout), seconds(ordered.Deadline)
			clients[string(key)] = client
		}
		begin := time.Now()
		results := make([]any, len(ordered.Sends))
		indexes, done := make(chan int), sync.WaitGroup{}
		for n := 0; n < ordered.AtOnce; n++ {
			done.Add(1)
			go func() {
				defer done.Done()
				for index := range indexes {
					results[index] = ask(client, ordered.Sends[index])
				}
			}()
		}
		for index := range ordered.Sends {
			indexes <- index
		}
		close(indexes)
		done.Wait()
		json.NewEncoder(os.Stdout).Encode(map[string]any{"results": results, "seconds": time.Since(begin).Seconds()})
	}
}
