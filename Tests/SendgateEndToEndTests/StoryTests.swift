import Foundation
import Testing

extension EndToEnd {
    @Suite struct StoryTests {
        @Test(arguments: ["http.client", "httpx", "curl"])
        func `a producer written from the reference alone lives through the whole story`(client: String)
            throws
        {
            let scratch = try Scratch()
            let layer = DeliveryLayer(in: scratch)
            try layer.up()
            let gate = GateProcess(in: scratch, layer.hop)
            try gate.start()
            let producer = try Finished.run(
                [
                    Machine.python, Machine.peer("producer.py"), gate.folder, "--client", client,
                    "--policies",
                    Machine.policies, "--deliveries", layer.socket, layer.record,
                ], in: scratch, within: 120)
            #expect(producer.ending == .exit(0), "\(producer.errors)\n\(producer.output)\n\(gate.errors)")
            // Each part says when all of it held; a part that was never told is a failure, too.
            #expect(producer.output.split(separator: "\n").count == 12, "\(producer.output)")
            #expect(try gate.stop() == .exit(0))
        }
    }
}
