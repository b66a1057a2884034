import Courier

await CourierCommand.main()
