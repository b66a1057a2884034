import Foundation
import Testing

extension EndToEnd {
    @Suite struct StoryTests {
        /// A thousand lines once are enough for two cores.
        @Test(arguments: [("http.client", 1000), ("httpx", 100), ("curl", 100)])
        func `a producer written from the reference alone lives through the whole story`(
            client: String, lineCount: Int
        )
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
                    Machine.policies, "--deliveries", layer.socket, layer.record, "--lines", "\(lineCount)",
                ], in: scratch, within: 120)
            #expect(producer.ending == .exit(0), "\(producer.errors)\n\(producer.output)\n\(gate.errors)")
            // Each part says when all of it held; a part that was never told is a failure, too.
            #expect(producer.output.split(separator: "\n").count == 12, "\(producer.output)")
            #expect(try gate.stop() == .exit(0))
        }
    }
}
