import Foundation
import Testing

extension EndToEnd {
    @Suite struct MetricsTests {
        @Test func `Prometheus's own checker finds nothing to say about the metrics`() throws {
            let scratch = try Scratch()
            let gate = GateProcess(in: scratch)
            try gate.start()
            try gate.registerSomebody()
            #expect(try gate.stillAnswers("m-1"))
            let reply = try gate.connect().request("GET", "/metrics")
            #expect(reply.status == 200 && reply.text.contains("sendgate_operations_total"), "\(reply.text)")
            let page = try scratch.write("metrics", reply.text)
            let checked = try Finished.run(
                ["/bin/sh", "-c", "exec \"$0\" check metrics < \"$1\"", Machine.promtool, page], in: scratch,
                within: 60)
            #expect(checked.ending == .exit(0), "\(checked.output)\(checked.errors)")
            #expect(checked.output.isEmpty && checked.errors.isEmpty, "\(checked.output)\(checked.errors)")
            #expect(try gate.stop() == .exit(0))
        }
    }
}
